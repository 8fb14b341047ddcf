#include "tools/convert/tensor_table.h"

#include "engine/base/printable.h"
#include "engine/base/shape.h"
#include "engine/system/signals.h"
#include "tools/cli/cli.h"
#include "tools/cli/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace rk {
namespace {

// Longer names push the other columns aside.
constexpr std::size_t kWidest = 80;

// Statistics of the finite values.
struct Range {
  double least = 0, largest = 0, sum = 0;
  std::int64_t count = 0, not_finite = 0;

  double mean() const { return count > 0 ? sum / static_cast<double>(count) : 0; }
  void add(double v) {
    if (!std::isfinite(v)) {
      ++not_finite;
      return;
    }
    if (count == 0) least = largest = v;
    least = std::min(least, v);
    largest = std::max(largest, v);
    sum += v;
    ++count;
  }
};

// Part by part, since all converted values at once would take much more memory than the file.
void add_values(const StoredTensor& tensor, Range& range) {
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  const std::int64_t elements = tensor.elements();
  if (elements > kMost) {
    const std::int64_t length = tensor.dims[0];
    if (length == 1) {
      StoredTensor inner = tensor;
      inner.dims.erase(inner.dims.begin());
      if (!inner.strides.empty()) inner.strides.erase(inner.strides.begin());
      add_values(inner, range);
      return;
    }
    const std::int64_t piece = std::max<std::int64_t>(1, kMost / (elements / length));
    for (std::int64_t at = 0; at < length; at += piece) {
      add_values(tensor.slice(at, std::min(piece, length - at)), range);
    }
    return;
  }
  stop_if_interrupted();
  if (is_real(tensor.type)) {
    std::vector<float> space;
    for (const float v : float_values(tensor, space)) range.add(static_cast<double>(v));
  } else {
    const bool above = tensor.type == ElementType::kU64;  // integer_values() wraps them around
    for (const std::int64_t v : integer_values(tensor)) {
      range.add(above ? static_cast<double>(static_cast<std::uint64_t>(v))
                      : static_cast<double>(v));
    }
  }
}

}  // namespace

void print_tensor_table(const std::vector<StoredTensor>& tensors) {
  std::size_t width = 4;
  for (const StoredTensor& tensor : tensors) {
    width = std::max(width, std::min(kWidest, one_line(tensor.name).size()));
  }
  print("{:<{}}  {:<5} {:<20} {:>12} {:>12} {:>12}\n", "name", width, "type", "shape", "min", "max",
        "mean");
  for (const StoredTensor& tensor : tensors) {
    std::string line = fmt::format("{:<{}}  {:<5} {:<20}", one_line(tensor.name), width,
                                   name_of(tensor.type), shape_text(tensor.dims));
    if ((is_real(tensor.type) || is_integer(tensor.type)) && tensor.elements() > 0) {
      Range range;
      add_values(tensor, range);
      line +=
          fmt::format(" {:>12.5g} {:>12.5g} {:>12.5g}", range.least, range.largest, range.mean());
      if (range.not_finite > 0) line += fmt::format("  {} NaN or infinite", range.not_finite);
    }
    print("{}\n", line);
  }
}

std::vector<StoredTensor> stored_tensors(const NetworkWeights& weights) {
  std::vector<StoredTensor> all;
  for (const NetworkWeights::Tensor& tensor : weights.tensors) {
    StoredTensor stored;
    stored.name = tensor.name;
    stored.dims = tensor.dims;
    if (tensor.dims.empty()) {
      const auto count = std::make_shared<const std::int64_t>(tensor.count);
      stored.type = ElementType::kI64;
      stored.bytes = std::as_bytes(std::span(count.get(), 1));
      stored.owner = count;
    } else {
      stored.bytes = std::as_bytes(tensor.values);
      stored.owner = tensor.owner;
    }
    all.push_back(std::move(stored));
  }
  return all;
}

}  // namespace rk
