// libFuzzer target: any batch of any loss gives the brute-force reference's value in double, with
// inputs whose similarities are exact in any order of summation, and finite numbers in float for
// rows no longer than 1; rows with NaN, infinity or huge numbers are an InputError.
#include "engine/base/error.h"
#include "tests/losses/reference.h"
#include "tools/common/normalized_loss.h"

#include <fmt/format.h>
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using rk::LossData;
using rk::LossKind;

// Multiples of 1/8: products and their sums have no rounding.
double exact(FuzzedDataProvider& bytes, int most) {
  return bytes.ConsumeIntegralInRange(-most, most) / 8.0;
}

// With `most` = 3 no row is longer than 1, as losses may assume; with 8 rows reach length 2.4.
LossData<double> batch(FuzzedDataProvider& bytes, LossKind kind, int most) {
  LossData<double> data;
  data.rows = bytes.ConsumeIntegralInRange<std::int64_t>(1, 12);
  const auto fill = [&](std::vector<double>& values, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) values.push_back(exact(bytes, most));
  };
  if (kind == LossKind::kScores) {
    data.classes = bytes.ConsumeIntegralInRange<std::int64_t>(1, 5);
    fill(data.scores, data.rows * data.classes);
    for (std::size_t i = 0; i < data.scores.size(); ++i) {
      data.targets.push_back(bytes.ConsumeBool() ? 1 : 0);
    }
    return data;
  }
  data.dim = bytes.ConsumeIntegralInRange<std::int64_t>(1, 6);
  fill(data.embeddings, data.rows * data.dim);
  const std::int64_t classes = bytes.ConsumeIntegralInRange<std::int64_t>(1, 6);
  const auto labels = [&](std::vector<std::int64_t>& out, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      out.push_back(bytes.ConsumeIntegralInRange<std::int64_t>(0, classes - 1));
    }
  };
  labels(data.labels, data.rows);
  if (kind == LossKind::kProxies) {
    data.classes = classes;
    fill(data.proxies, classes * data.dim);
    return data;
  }
  data.memory = bytes.ConsumeIntegralInRange<std::int64_t>(0, 6);
  fill(data.memory_embeddings, data.memory * data.dim);
  labels(data.memory_labels, data.memory);
  if (!bytes.ConsumeBool()) return data;
  // An image belongs to one class.
  const auto images = [&](std::vector<std::int64_t>& out, const std::vector<std::int64_t>& of) {
    for (const std::int64_t label : of) {
      out.push_back(label + classes * bytes.ConsumeIntegralInRange<std::int64_t>(0, 8));
    }
  };
  images(data.image_ids, data.labels);
  images(data.memory_image_ids, data.memory_labels);
  return data;
}

LossData<float> as_float(const LossData<double>& from) {
  LossData<float> data;
  data.rows = from.rows, data.dim = from.dim, data.memory = from.memory;
  data.classes = from.classes;
  const auto copy = [](const std::vector<double>& values, std::vector<float>& out) {
    for (const double v : values) out.push_back(static_cast<float>(v));
  };
  copy(from.embeddings, data.embeddings);
  copy(from.memory_embeddings, data.memory_embeddings);
  copy(from.proxies, data.proxies);
  copy(from.scores, data.scores);
  data.labels = from.labels, data.memory_labels = from.memory_labels;
  data.image_ids = from.image_ids, data.memory_image_ids = from.memory_image_ids;
  data.targets = from.targets;
  return data;
}

void require(bool condition, const rk::LossSpec& spec, const char* what) {
  if (condition) return;
  fmt::print(stderr, "{}: {}\n", spec.text(), what);
  std::abort();
}

template <class S> bool finite(const std::vector<S>& values) {
  return std::ranges::all_of(values, [](S v) { return std::isfinite(v); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider bytes(data, size);
  const std::vector<std::string> specs = rk::reference::all_specs();
  const rk::LossSpec spec =
      rk::parse_loss(specs[bytes.ConsumeIntegralInRange<std::size_t>(0, specs.size() - 1)]);
  const LossKind kind = spec.entry->kind;
  const rk::Context context(1);
  const int most = bytes.ConsumeBool() ? 8 : 3;
  const LossData<double> sane = batch(bytes, kind, most);
  LossData<float> single = as_float(sane);
  try {
    rk::LossFunction<double> in_double(context, spec, sane.shape(), false);
    const rk::LossResult<double> got = in_double(sane);
    const rk::reference::Value expected =
        rk::reference::reference_of(spec).value(sane, spec.values);
    require(got.valid_queries == expected.valid, spec, "valid queries");
    require(std::abs(got.loss - expected.loss) <= 1e-9 * std::abs(expected.loss) + 1e-9, spec,
            "the loss");
    require(finite(got.grad) && finite(got.grad_proxies), spec, "gradients in double");
    rk::LossFunction<float> in_float(context, spec, single.shape(), false);
    const rk::LossResult<float> rough = in_float(single);
    // Sums of exponentials of similarities beyond 2 leave the range of float.
    const bool all_finite =
        std::isfinite(rough.loss) && finite(rough.grad) && finite(rough.grad_proxies);
    require(most == 8 || all_finite, spec, "not finite in float");
  } catch (const rk::InputError&) {
    // A proxy of length 0 has no direction.
    require(kind == LossKind::kProxies, spec, "refused");
    return 0;
  }
  // Any bits in one element.
  std::vector<float>& values = kind == LossKind::kScores ? single.scores : single.embeddings;
  const auto at = bytes.ConsumeIntegralInRange<std::size_t>(0, values.size() - 1);
  const auto bits = bytes.ConsumeIntegral<std::uint32_t>();
  std::memcpy(&values[at], &bits, sizeof(bits));
  try {
    rk::LossFunction<float> in_float(context, spec, single.shape(), false);
    in_float(single);
    require(std::isfinite(values[at]), spec, "NaN or infinity taken");
  } catch (const rk::InputError&) {
    require(!(std::abs(values[at]) <= 1e10F), spec, "a plain number refused");
  }
  return 0;
}
