#include "tools/common/normalized_loss.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/base/random.h"
#include "engine/system/signals.h"
#include "losses/frame/finite.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace rk {
namespace {

// The number of embeddings that equal an earlier one.
std::int64_t count_equal_rows(const LossData<double>& data) {
  std::set<std::vector<double>> different;
  const auto dim = static_cast<std::ptrdiff_t>(data.dim);
  for (auto row = data.embeddings.begin(); row != data.embeddings.end(); row += dim) {
    different.insert({row, row + dim});
  }
  return data.embeddings.empty() ? 0 : data.rows - static_cast<std::int64_t>(different.size());
}

// Rounds up so that what follows `elements` begins on a cache line.
constexpr std::int64_t on_a_line(std::int64_t elements) { return round_up(elements, 16); }

template <class S> std::vector<double> lengths_of(const std::vector<S>& rows, std::int64_t dim) {
  std::vector<double> lengths;
  for (auto row = rows.begin(); row != rows.end(); row += dim) {
    double square = 0;
    for (std::int64_t d = 0; d < dim; ++d) {
      square += static_cast<double>(row[d]) * static_cast<double>(row[d]);
    }
    lengths.push_back(std::sqrt(square));
  }
  return lengths;
}

// Scales every row to unit length; returns the original lengths.
template <class S>
std::vector<double> normalize_rows(std::vector<S>& rows, std::int64_t dim, const char* what) {
  std::vector<double> lengths = lengths_of(rows, dim);
  for (std::size_t r = 0; r < lengths.size(); ++r) {
    if (lengths[r] == 0) {
      fail<InputError>("{}: row {} is zero and has no direction; leave out --normalize", what, r);
    }
    S* row = rows.data() + r * static_cast<std::size_t>(dim);
    for (std::int64_t d = 0; d < dim; ++d) {
      row[d] = static_cast<S>(static_cast<double>(row[d]) / lengths[r]);
    }
  }
  return lengths;
}

template <class S>
void add_scaled(std::vector<S>& values, const std::vector<S>& direction, std::size_t offset,
                S step) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += step * direction[offset + i];
}

}  // namespace

template <class S>
LossFunction<S>::LossFunction(const Context& context, const LossSpec& spec, const LossShape& shape,
                              bool normalize)
    : context_(context),
      spec_(spec),
      normalize_(normalize && spec.entry->kind != LossKind::kScores),
      loss_(make_loss<S>(spec)) {
  loss_->allocate(context_, shape);
  const std::int64_t rows =
      shape.rows * (spec.entry->kind == LossKind::kScores ? shape.classes : shape.dim);
  const std::int64_t proxies =
      spec.entry->kind == LossKind::kProxies ? shape.classes * shape.dim : 0;
  inputs_ = context.allocate<S>(on_a_line(rows) + on_a_line(shape.memory * shape.dim) +
                                on_a_line(proxies));
  gradients_ = context.allocate<S>(on_a_line(rows) + proxies);
}

template <class S> LossResult<S> LossFunction<S>::operator()(const LossData<S>& data) {
  LossInput<S> input = data.input();
  std::vector<S> unit, unit_memory;
  std::vector<double> lengths;
  if (normalize_) {
    unit = data.embeddings;
    lengths = normalize_rows(unit, data.dim, "embeddings");
    input.embeddings = unit.data();
    unit_memory = data.memory_embeddings;  // without gradient
    normalize_rows(unit_memory, data.dim, "memory_embeddings");
    if (data.memory > 0) input.memory_embeddings = unit_memory.data();
  }
  check_finite(context_, input);
  std::vector<S> packed;  // in this order: the rows, the memory, the proxies
  const auto place = [&](const S*& from, std::int64_t elements) {
    if (from == nullptr) return;
    const S* device = inputs_.as<S>() + packed.size();
    packed.insert(packed.end(), from, from + elements);
    packed.resize(static_cast<std::size_t>(on_a_line(std::ssize(packed))));
    from = device;
  };
  place(input.embeddings, data.rows * data.dim);
  place(input.scores, data.rows * data.classes);
  place(input.memory_embeddings, data.memory * data.dim);
  place(input.proxies, data.classes * data.dim);
  inputs_.upload(packed.data(), packed.size() * sizeof(S));

  LossResult<S> result;
  result.grad.resize(static_cast<std::size_t>(data.grad_elements(kind())));
  result.grad_proxies.resize(static_cast<std::size_t>(data.proxy_elements(kind())));
  const std::int64_t behind = on_a_line(std::ssize(result.grad));
  std::vector<S> both(static_cast<std::size_t>(behind) + result.grad_proxies.size(),
                      std::numeric_limits<S>::quiet_NaN());
  gradients_.upload(both.data(), both.size() * sizeof(S));
  LossOutput<S> output;
  output.grad = gradients_.as<S>();
  output.grad_proxies = gradients_.as<S>() + behind;
  loss_->run(context_, input, output);
  result.loss = output.loss;
  result.valid_queries = output.valid_queries;
  gradients_.download(both.data(), both.size() * sizeof(S));
  std::copy_n(both.begin(), result.grad.size(), result.grad.begin());
  std::copy(both.begin() + behind, both.end(), result.grad_proxies.begin());
  for (std::size_t row = 0; row < lengths.size(); ++row) {
    const auto dim = static_cast<std::size_t>(data.dim);
    const S* e = unit.data() + row * dim;
    S* grad = result.grad.data() + row * dim;
    S along = 0;
    for (std::size_t d = 0; d < dim; ++d) along += grad[d] * e[d];
    for (std::size_t d = 0; d < dim; ++d) {
      const S across = grad[d] - along * e[d];
      grad[d] = static_cast<S>(static_cast<double>(across) / lengths[row]);
      if (!std::isfinite(grad[d]) && std::isfinite(across)) {
        fail<InputError>(
            "embeddings: row {} has the length {:.3g}, for which its gradient is beyond the "
            "largest number; scale the rows up, or leave out --normalize",
            row, lengths[row]);
      }
    }
  }
  return result;
}

DifferenceCheck check_differences(LossFunction<double>& function, const LossData<double>& data,
                                  std::uint64_t seed, int directions, double step) {
  const LossResult<double> at = function(data);
  std::vector<double> grad = at.grad;
  grad.insert(grad.end(), at.grad_proxies.begin(), at.grad_proxies.end());
  // How far each number moves for a step of 1: what is normalised moves by shares of its length.
  std::vector<double> scale(grad.size(), 1.0);
  if (function.normalizes()) {
    const auto dim = static_cast<std::size_t>(data.dim);
    const std::vector<double> lengths = lengths_of(data.embeddings, data.dim);
    for (std::size_t i = 0; i < data.embeddings.size(); ++i) scale[i] = lengths[i / dim];
  }
  double grad_square = 0;
  for (std::size_t i = 0; i < grad.size(); ++i) {
    grad[i] *= scale[i];
    grad_square += grad[i] * grad[i];
  }

  std::vector<double> errors;
  for (int k = 0; k < directions; ++k) {
    stop_if_interrupted();
    CounterRandom random(seed, 0, static_cast<std::uint64_t>(k));
    std::vector<double> v(grad.size());
    double square = 0;
    for (double& x : v) {
      x = random.normal();
      square += x * x;
    }
    for (double& x : v) x /= std::sqrt(square);
    std::vector<double> path = v;
    for (std::size_t i = 0; i < path.size(); ++i) path[i] *= scale[i];
    const auto value_at = [&](double h) {
      LossData<double> moved = data;
      const bool scores = function.kind() == LossKind::kScores;
      add_scaled(scores ? moved.scores : moved.embeddings, path, 0, h);
      if (!at.grad_proxies.empty()) add_scaled(moved.proxies, path, at.grad.size(), h);
      return function(moved).loss;
    };
    const double difference = (value_at(step) - value_at(-step)) / (2 * step);
    double expected = 0;
    for (std::size_t i = 0; i < v.size(); ++i) expected += grad[i] * v[i];
    // Along a random direction a gradient of length g has a slope of about g / sqrt(elements).
    const double size = std::sqrt(grad_square / static_cast<double>(grad.size()));
    const double error = std::abs(difference - expected);
    // Losses are rounded in their last digits. The gradient's size is taken as at least a thousand
    // times the resulting rounding error of the differences, which otherwise would look like an
    // error of a gradient that is almost 0.
    const double rounding = 8 * std::numeric_limits<double>::epsilon() * std::abs(at.loss) / step;
    errors.push_back(error == 0             ? 0.0
                     : std::isfinite(error) ? error / std::max(size, 1000 * rounding)
                                            : std::numeric_limits<double>::infinity());
  }
  std::sort(errors.begin(), errors.end());
  DifferenceCheck check;
  check.equal_rows = count_equal_rows(data);
  check.directions = directions;
  check.step = step;
  if (!errors.empty()) {
    check.worst = errors.back();
    check.median = errors[errors.size() / 2];
  }
  return check;
}

template class LossFunction<float>;
template class LossFunction<double>;

}  // namespace rk
