// Rows to run a kernel on: scores of made-up embeddings, unequal classes, duplicates (ties),
// image_ids that take columns out, memory columns. Deterministic; needs nothing but the standard
// library.
#pragma once

#include "engine/base/integers.h"
#include "kernels/rows/gallery_row.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <vector>

namespace rk::race {

// Uninitialised memory filled with bytes 0xFF: NaN as float and as double, -1 as an integer.
class NanMemory {
 public:
  explicit NanMemory(std::int64_t bytes)
      : bytes_((bytes + 127) / 64 * 64),
        data_(std::aligned_alloc(64, static_cast<std::size_t>(bytes_)), &std::free) {
    fill();
  }
  void fill() { std::memset(data(), 0xFF, static_cast<std::size_t>(bytes_)); }
  void* data() const {
    if (data_ == nullptr) throw std::bad_alloc();
    return data_.get();
  }

 private:
  std::int64_t bytes_;
  std::unique_ptr<void, void (*)(void*)> data_;
};

template <class S> class Problem {
 public:
  static constexpr int kRows = 18;
  static constexpr int kMemory = 9;
  static constexpr int kColumns = kRows + kMemory;
  static constexpr int kDim = 5;

  Problem() {
    std::uint32_t state = 12345;
    const auto random = [&] {
      state = state * 1664525U + 1013904223U;
      return static_cast<S>(static_cast<double>(state >> 8) / (1 << 24) - 0.5);
    };
    std::vector<S> e(kColumns * kDim);
    for (int i = 0; i < kColumns; ++i) {
      // Interleaved classes of 2 to 5 items; 1 is alone in its class, a query without positives.
      const int label = i == 0 ? 6 : i == 1 ? 7 : i % 6 + (i % 5 == 0 ? 1 : 0);
      classes_.push_back(label);
      image_ids_.push_back(i == 13 ? 7 : i);  // 13 is the same image as 7
      S square = 0;
      for (int d = 0; d < kDim; ++d) {
        S& x = e[at(i * kDim + d)];
        x = random() + (d == label % kDim ? S(0.6) : S(0));
        square += x * x;
      }
      for (int d = 0; d < kDim; ++d) e[at(i * kDim + d)] /= std::sqrt(square);
    }
    classes_[13] = classes_[7];
    for (int d = 0; d < kDim; ++d) {  // 4, 9 and 11 are the same vector
      e[at(9 * kDim + d)] = e[at(4 * kDim + d)];
      e[at(11 * kDim + d)] = e[at(4 * kDim + d)];
    }
    members_.resize(8);
    for (int i = 0; i < kColumns; ++i) {
      members_[at(classes_[static_cast<std::size_t>(i)])].push_back(i);
    }
    classes_.resize(static_cast<std::size_t>(pad(kColumns)), 0);
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < pad(kColumns); ++j) {
        S s = 0;
        for (int d = 0; d < kDim; ++d) {
          if (j < kColumns) {
            s += e[at(i * kDim + d)] * e[at(j * kDim + d)];
          }
        }
        scores_.push_back(j < kColumns ? s : std::numeric_limits<S>::quiet_NaN());
      }
    }
  }

  // Everything but the scores, which each run copies: kernels write over them.
  GalleryRow<S> row(int query) const {
    GalleryRow<S> in;
    const auto& members = members_[at(classes_[static_cast<std::size_t>(query)])];
    in.columns = kColumns;
    in.classes = classes_.data();
    in.members = members.data();
    in.member_count = static_cast<int>(members.size());
    in.image_ids = image_ids_.data();
    in.self = query;
    in.weight = S(0.25);
    return in;
  }
  bool has_positive(int query) const {
    const GalleryRow<S> in = row(query);
    for (int m = 0; m < in.member_count; ++m) {
      if (in.is_positive(m, false)) return true;
    }
    return false;
  }
  const std::vector<S>& scores() const { return scores_; }

 private:
  std::vector<std::int32_t> classes_;
  std::vector<std::int64_t> image_ids_;
  std::vector<std::vector<std::int32_t>> members_;
  std::vector<S> scores_;
};

}  // namespace rk::race
