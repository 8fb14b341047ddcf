// Cuts a data set into boxes, each within one of the pieces in which the data set is stored.
#pragma once

#include "weights/hdf5/questions.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace rk {

// Enumerates the boxes of `dims`, piece by piece, each of at most `most` elements. Every side must
// be at least 1, and `piece` no larger than `dims`.
class Hdf5Boxes {
 public:
  Hdf5Boxes(std::vector<std::int64_t> dims, std::vector<std::int64_t> piece, std::int64_t most)
      : dims_(std::move(dims)),
        piece_(std::move(piece)),
        step_(dims_.size(), 1),
        in_piece_(dims_.size(), 0),
        piece_at_(dims_.size(), 0) {
    for (std::size_t axis = dims_.size(); axis-- > 0;) {
      step_[axis] = std::clamp<std::int64_t>(most, 1, piece_[axis]);
      most /= step_[axis];
    }
  }

  bool done() const { return done_; }

  Hdf5Box next() {
    Hdf5Box box{piece_at_, step_};
    for (std::size_t axis = 0; axis < dims_.size(); ++axis) {
      box.offset[axis] += in_piece_[axis];
      box.sides[axis] = std::min(step_[axis], end(axis) - box.offset[axis]);
    }
    advance();
    return box;
  }

 private:
  std::int64_t end(std::size_t axis) const {  // of the current piece
    return std::min(piece_at_[axis] + piece_[axis], dims_[axis]);
  }

  void advance() {
    for (std::size_t axis = dims_.size(); axis-- > 0;) {
      in_piece_[axis] += step_[axis];
      if (piece_at_[axis] + in_piece_[axis] < end(axis)) return;
      in_piece_[axis] = 0;
    }
    for (std::size_t axis = dims_.size(); axis-- > 0;) {
      piece_at_[axis] += piece_[axis];
      if (piece_at_[axis] < dims_[axis]) return;
      piece_at_[axis] = 0;
    }
    done_ = true;
  }

  std::vector<std::int64_t> dims_, piece_, step_, in_piece_, piece_at_;
  bool done_ = false;
};

// The same boxes, as many at a time as one question may name and one answer holds.
class Hdf5BoxBatches {
 public:
  // Either the question is small compared with their values, or the boxes are tiny, and then this
  // many are worth waking a process for.
  static constexpr std::size_t kMostBoxes = 1024;

  Hdf5BoxBatches(std::vector<std::int64_t> dims, std::vector<std::int64_t> piece, std::size_t most)
      : boxes_(std::move(dims), std::move(piece), static_cast<std::int64_t>(most)), most_(most) {}

  // Empty after the last.
  std::vector<Hdf5Box> next() {
    std::vector<Hdf5Box> batch;
    std::size_t elements = 0;
    while (batch.size() < kMostBoxes && (left_over_ || !boxes_.done())) {
      if (!left_over_) left_over_ = boxes_.next();
      elements += elements_of(*left_over_);
      if (elements > most_) break;
      batch.push_back(std::move(*left_over_));
      left_over_.reset();
    }
    return batch;
  }

 private:
  Hdf5Boxes boxes_;
  std::size_t most_;
  std::optional<Hdf5Box> left_over_;  // beyond what the batch before held
};

// Copies the box's values, dense in C order, to their positions in `out` of shape `dims`.
template <class T>
void scatter(const Hdf5Box& box, const std::vector<std::int64_t>& dims, const std::byte* values,
             T* out) {
  const std::size_t rank = dims.size();
  // The last axes that the box covers completely, and the axis before them, form one contiguous
  // run.
  std::size_t run = 1, outer = rank;
  while (outer > 0) {
    --outer;
    run *= static_cast<std::size_t>(box.sides[outer]);
    if (box.sides[outer] != dims[outer]) break;
  }
  std::vector<std::int64_t> at(outer, 0);
  for (;;) {
    std::int64_t element = 0;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      element = element * dims[axis] + box.offset[axis] + (axis < outer ? at[axis] : 0);
    }
    std::copy_n(values, run * sizeof(T), reinterpret_cast<std::byte*>(out + element));
    values += run * sizeof(T);
    std::size_t axis = outer;
    for (; axis > 0; --axis) {
      if (++at[axis - 1] < box.sides[axis - 1]) break;
      at[axis - 1] = 0;
    }
    if (axis == 0) return;
  }
}

}  // namespace rk
