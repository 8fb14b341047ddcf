#include "engine/tape/parameters.h"

#include "engine/base/error.h"
#include "engine/base/fnv1a.h"
#include "engine/base/integers.h"
#include "engine/base/parallel.h"
#include "engine/base/random.h"
#include "engine/base/random_stream.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace rk {
namespace {

constexpr std::int64_t kFloatsPerLine = 16;

std::int64_t stored_index(const WeightOrder& order, const Shape& shape, std::int64_t o,
                          std::int64_t i, std::int64_t pixel) {
  const std::int64_t inputs = shape[1], pixels = shape[2] * shape[3], b = order.block;
  switch (order.kind) {
    case WeightOrder::Kind::kPlain: return (o * inputs + i) * pixels + pixel;
    case WeightOrder::Kind::kBlocked:
      return ((((o / b) * (inputs / b) + i / b) * pixels + pixel) * b + i % b) * b + o % b;
    case WeightOrder::Kind::kStem: return (((o / b) * pixels + pixel) * inputs + i) * b + o % b;
    case WeightOrder::Kind::kChannelsLast: return (o * pixels + pixel) * inputs + i;
  }
  return 0;
}

// Calls f(stored index, canonical index) for every element.
template <class F> void for_each_element(const WeightOrder& order, const Shape& shape, F&& f) {
  if (order.kind == WeightOrder::Kind::kPlain) {
    for (std::int64_t e = 0; e < shape.elements(); ++e) f(e, e);
    return;
  }
  // The stored index is the sum of a term each for output, input and pixel, which avoids divisions
  // for every element.
  std::vector<std::int64_t> of_input(static_cast<std::size_t>(shape[1]));
  for (std::int64_t i = 0; i < shape[1]; ++i) {
    of_input[at(i)] = stored_index(order, shape, 0, i, 0);
  }
  const std::int64_t pixels = shape[2] * shape[3];
  const std::int64_t of_pixel = stored_index(order, shape, 0, 0, 1);
  std::int64_t canonical = 0;
  for (std::int64_t o = 0; o < shape[0]; ++o) {
    const std::int64_t of_output = stored_index(order, shape, o, 0, 0);
    for (const std::int64_t input : of_input) {
      for (std::int64_t p = 0; p < pixels; ++p) {
        f(of_output + input + p * of_pixel, canonical++);
      }
    }
  }
}

// Orthonormal rows (or columns, if there are more rows than columns) from normal numbers by
// modified Gram-Schmidt in double; the second pass makes them orthogonal up to rounding.
std::vector<float> orthogonal(std::int64_t rows, std::int64_t columns, CounterRandom& random) {
  const bool tall = rows > columns;
  const std::int64_t count = tall ? columns : rows, length = tall ? rows : columns;
  std::vector<double> basis(static_cast<std::size_t>(count * length));
  for (double& x : basis) x = random.normal();
  const auto row = [&](std::int64_t r) { return basis.data() + r * length; };
  for (std::int64_t r = 0; r < count; ++r) {
    for (int pass = 0; pass < 2; ++pass) {
      for (std::int64_t other = 0; other < r; ++other) {
        double dot = 0;
        for (std::int64_t k = 0; k < length; ++k) dot += row(r)[k] * row(other)[k];
        for (std::int64_t k = 0; k < length; ++k) row(r)[k] -= dot * row(other)[k];
      }
    }
    double norm = 0;
    for (std::int64_t k = 0; k < length; ++k) norm += row(r)[k] * row(r)[k];
    norm = std::sqrt(norm);
    for (std::int64_t k = 0; k < length; ++k) row(r)[k] /= norm;
  }
  std::vector<float> out(static_cast<std::size_t>(rows * columns));
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      out[at(r * columns + c)] = static_cast<float>(tall ? row(c)[r] : row(r)[c]);
    }
  }
  return out;
}

std::vector<float> draw(const Parameters::Entry& entry, std::uint64_t seed, int threads) {
  std::vector<float> values(static_cast<std::size_t>(entry.elements()));
  const double scale = entry.initial.scale;
  const std::uint32_t stream = random_stream(RandomUseOnce::kParameter);
  // By its name, so that a draw does not depend on what was declared before.
  const std::uint64_t first = fnv1a(entry.name);
  // Each block of elements has its own generator, so that threads can share the work.
  const auto fill = [&](auto&& one) {
    constexpr std::int64_t kBlock = 4096;
    const std::int64_t count = entry.elements();
    parallel_for(threads, divide_up(count, kBlock), [&](std::int64_t block, int) {
      CounterRandom random(seed, stream, first + static_cast<std::uint64_t>(block));
      for (std::int64_t i = block * kBlock; i < std::min(count, (block + 1) * kBlock); ++i) {
        values[at(i)] = static_cast<float>(one(random));
      }
    });
  };
  switch (entry.initial.kind) {
    case Initial::Kind::kConstant:
      std::fill(values.begin(), values.end(), static_cast<float>(scale));
      break;
    case Initial::Kind::kNormal:
      fill([&](CounterRandom& random) { return scale * random.normal(); });
      break;
    case Initial::Kind::kUniform:
      fill([&](CounterRandom& random) { return random.uniform(-scale, scale); });
      break;
    case Initial::Kind::kOrthogonal: {
      CounterRandom random(seed, stream, first);
      values = orthogonal(entry.shape[0], entry.shape[1], random);
      break;
    }
  }
  return values;
}

}  // namespace

void Parameters::freeze(std::vector<std::string> beginnings) {
  expect(entries_.empty(), "[parameters] expected freeze() before {} is declared",
         entries_.empty() ? "" : entries_[0].name);
  frozen_ = std::move(beginnings);
}

ParameterId Parameters::declare(const std::string& name, const Shape& shape, Initial initial,
                                ParameterGroup group) {
  for (std::size_t id = 0; id < entries_.size(); ++id) {
    const Entry& e = entries_[id];
    if (e.name != name) continue;
    expect(e.shape == shape, "[parameters] {} was declared as {}, now as {}", name, e.shape.text(),
           shape.text());
    return static_cast<ParameterId>(id);
  }
  expect(!allocated_, "[parameters] {} is declared after allocation", name);
  const bool frozen =
      std::ranges::any_of(frozen_, [&](const auto& front) { return name.starts_with(front); });
  entries_.push_back({name, shape, initial, group, {}, elements_, frozen});
  elements_ += round_up(shape.elements(), kFloatsPerLine);
  return static_cast<ParameterId>(entries_.size()) - 1;
}

void Parameters::store_as(ParameterId id, WeightOrder order) {
  Entry& e = entries_[at(id)];
  expect(!allocated_ || e.order == order,
         "[parameters] {} is stored in another order; expected lay_out() before allocate()",
         e.name);
  e.order = order;
}

std::optional<BufferId> Parameters::find_buffer(const std::string& name, bool counter,
                                                std::int64_t elements) const {
  for (std::size_t id = 0; id < buffer_entries_.size(); ++id) {
    const BufferEntry& there = buffer_entries_[id];
    if (there.name != name) continue;
    expect(there.counter == counter && there.elements == elements,
           "[parameters] {} is declared as two different things", name);
    return static_cast<BufferId>(id);
  }
  expect(!allocated_, "[parameters] {} is declared after allocation", name);
  return std::nullopt;
}

BufferId Parameters::declare_buffer(const std::string& name, std::int64_t elements, float initial) {
  if (const std::optional<BufferId> id = find_buffer(name, false, elements)) return *id;
  buffer_entries_.push_back({name, false, elements, initial, buffer_elements_});
  buffer_elements_ += round_up(elements, kFloatsPerLine);
  return static_cast<BufferId>(buffer_entries_.size()) - 1;
}

BufferId Parameters::declare_counter(const std::string& name) {
  if (const std::optional<BufferId> id = find_buffer(name, true, 1)) return *id;
  buffer_entries_.push_back({name, true, 1, 0, static_cast<std::int64_t>(counters_.size())});
  counters_.push_back(0);
  return static_cast<BufferId>(buffer_entries_.size()) - 1;
}

void Parameters::allocate(const Context& context) {
  if (allocated_) return;
  allocated_ = true;
  const auto zeroed = [](std::int64_t elements) {
    Buffer buffer = Buffer::of<float>(elements);
    if (elements > 0) std::memset(buffer.data(), 0, buffer.bytes());
    return buffer;
  };
  values_ = zeroed(elements_);
  gradients_ = zeroed(elements_);
  buffers_ = zeroed(buffer_elements_);
  if (!context.on_gpu()) return;
  device_values_ = context.allocate(values_.bytes());
  device_gradients_ = context.allocate(gradients_.bytes());
  device_buffers_ = context.allocate(buffers_.bytes());
  context.clear(device_gradients_.data(), device_gradients_.bytes());
  upload();
}

void Parameters::upload() {
  if (device_values_.bytes() == 0) return;
  device_values_.upload(values_.data(), values_.bytes());
  device_buffers_.upload(buffers_.data(), buffers_.bytes());
}

void Parameters::download() {
  if (device_values_.bytes() == 0) return;
  device_values_.download(values_.data(), values_.bytes());
  device_buffers_.download(buffers_.data(), buffers_.bytes());
}

void Parameters::download_gradients() {
  if (device_gradients_.bytes() == 0) return;
  device_gradients_.download(gradients_.data(), gradients_.bytes());
}

float* Parameters::device_buffer(BufferId id) const {
  return device_statistics() + buffer_entries_[at(id)].offset;
}

void Parameters::initialise(const Context& context, std::uint64_t seed) {
  allocate(context);
  for (std::size_t id = 0; id < entries_.size(); ++id) {
    set(values(), static_cast<ParameterId>(id), draw(entries_[id], seed, context.threads()).data());
  }
  std::ranges::fill(gradients(), 0.0F);
  for (const BufferEntry& b : buffer_entries_) {
    if (!b.counter) std::fill_n(buffers_.as<float>() + b.offset, b.elements, b.initial);
  }
  std::ranges::fill(counters_, 0);
  upload();
}

float* Parameters::buffer(BufferId id) const {
  return buffers_.as<float>() + buffer_entries_[at(id)].offset;
}

std::int64_t& Parameters::counter(BufferId id) {
  return counters_[at(buffer_entries_[static_cast<std::size_t>(id)].offset)];
}

std::int64_t Parameters::counter(BufferId id) const {
  return counters_[at(buffer_entries_[static_cast<std::size_t>(id)].offset)];
}

std::int64_t Parameters::parameter_count() const {
  std::int64_t sum = 0;
  for (const Entry& e : entries_) sum += e.elements();
  return sum;
}

void Parameters::get(std::span<const float> flat, ParameterId id, float* canonical) const {
  const Entry& e = entry(id);
  const float* stored = flat.data() + e.offset;
  for_each_element(e.order, e.shape,
                   [&](std::int64_t s, std::int64_t c) { canonical[c] = stored[s]; });
}

void Parameters::set(std::span<float> flat, ParameterId id, const float* canonical) const {
  const Entry& e = entry(id);
  float* stored = flat.data() + e.offset;
  for_each_element(e.order, e.shape,
                   [&](std::int64_t s, std::int64_t c) { stored[s] = canonical[c]; });
}

}  // namespace rk
