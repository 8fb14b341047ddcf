// Dimensions of a tensor, outermost first; images are (N, H, W, C). Rank 0 to 4; a scalar has rank
// 0 and one element. Trivially copyable.
#pragma once

#include "engine/base/error.h"
#include "engine/base/integers.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace rk {

// "[16, 224, 224, 3]", of any rank.
inline std::string shape_text(std::span<const std::int64_t> dims) {
  std::string out = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) {
    out += (i > 0 ? ", " : "") + std::to_string(dims[i]);
  }
  return out + "]";
}

class Shape {
 public:
  static constexpr int kMaxRank = 4;

  constexpr Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) {
    expect(dims.size() <= kMaxRank, "[shape] expected at most {} dimensions, got {}", kMaxRank,
           dims.size());
    for (std::int64_t d : dims) append(d);
  }

  void append(std::int64_t dim) {
    expect(rank_ < kMaxRank, "[shape] expected at most {} dimensions", kMaxRank);
    expect(dim >= 0, "[shape] expected a size >= 0, got {}", dim);
    dims_[at(rank_++)] = dim;
  }

  constexpr int rank() const { return rank_; }
  constexpr std::int64_t operator[](int axis) const { return dims_[at(axis)]; }
  constexpr std::int64_t elements() const {
    std::int64_t product = 1;
    for (int i = 0; i < rank_; ++i) product *= dims_[at(i)];
    return product;
  }
  constexpr bool operator==(const Shape& other) const {
    if (rank_ != other.rank_) return false;
    for (int i = 0; i < rank_; ++i) {
      if ((*this)[i] != other[i]) return false;
    }
    return true;
  }
  std::string text() const { return shape_text({dims_.data(), static_cast<std::size_t>(rank_)}); }

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

// Throws std::invalid_argument, which names the layer, unless the tensor holds images.
inline void expect_image(const Shape& shape, const std::string& layer) {
  expect(shape.rank() == 4, "[{}] expected an image tensor (N, H, W, C), got {}", layer,
         shape.text());
}

}  // namespace rk
