#include "tests/support/goldens/golden_generator.h"
#include "engine/base/integers.h"

#include <cmath>

namespace rk::golden {
namespace {

double symmetric(std::uint64_t seed, std::int64_t index) { return 2.0 * unit(seed, index) - 1.0; }

// ResNet's blocks start close to the identity, so that no case amplifies rounding errors.
bool is_last_gamma(std::string_view key, bool bottleneck) {
  return key.starts_with("layer") && key.ends_with(bottleneck ? ".bn3.weight" : ".bn2.weight");
}

struct Range {
  double low, width;
};

Range range_of(std::string_view key, bool bottleneck) {
  if (key.ends_with("running_mean")) return {-0.25, 0.5};
  if (key.ends_with("running_var")) return {0.75, 0.5};
  if (key.ends_with("bias")) return {-1.0, 2.0};
  if (is_last_gamma(key, bottleneck)) return {0.125, 0.125};
  return {0.75, 0.5};
}

}  // namespace

std::uint64_t key_seed(std::string_view key) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return hash;
}

double unit(std::uint64_t seed, std::int64_t index) {
  std::uint64_t z = seed + (static_cast<std::uint64_t>(index) + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return static_cast<double>((z ^ (z >> 31)) >> 40) * 0x1p-24;
}

std::vector<float> Generator::tensor(const std::string& key,
                                     const std::vector<std::int64_t>& dims) const {
  std::int64_t count = 1;
  for (std::int64_t d : dims) count *= d;
  std::vector<float> out(static_cast<std::size_t>(count));
  const std::uint64_t seed = key_seed(salt + key);
  if (dims.size() == 1) {
    const Range range = range_of(key, bottleneck);
    for (std::int64_t i = 0; i < count; ++i) {
      out[at(i)] = static_cast<float>(range.low + range.width * unit(seed, i));
    }
    return out;
  }
  const std::int64_t inputs = count / dims[0];
  const auto fan_in = static_cast<double>(inputs);
  const double bound = std::sqrt((dims.size() == 4 ? 6.0 : 3.0) / fan_in);
  for (std::int64_t i = 0; i < count; ++i) {
    out[at(i)] = static_cast<float>(symmetric(seed, i) * bound);
  }
  return out;
}

std::vector<float> Generator::images(const std::string& key, std::int64_t n, std::int64_t height,
                                     std::int64_t width) const {
  const std::uint64_t coarse = key_seed(salt + "coarse:" + key);
  const std::uint64_t fine = key_seed(salt + "input:" + key);
  std::vector<float> out;
  out.reserve(static_cast<std::size_t>(n * 3 * height * width));
  for (std::int64_t plane = 0; plane < n * 3; ++plane) {
    for (std::int64_t y = 0; y < height; ++y) {
      for (std::int64_t x = 0; x < width; ++x) {
        const std::int64_t cell = (plane * 4 + y * 4 / height) * 4 + x * 4 / width;
        const std::int64_t pixel = (plane * height + y) * width + x;
        out.push_back(
            static_cast<float>(1.5 * symmetric(coarse, cell) + 0.75 * symmetric(fine, pixel)));
      }
    }
  }
  return out;
}

std::vector<float> Generator::cotangent(const std::string& key, std::int64_t n,
                                        std::int64_t dim) const {
  const std::uint64_t seed = key_seed(salt + "dE:" + key);
  std::vector<float> out;
  for (std::int64_t i = 0; i < n * dim; ++i) out.push_back(static_cast<float>(symmetric(seed, i)));
  return out;
}

}  // namespace rk::golden
