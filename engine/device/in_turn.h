// Room for two pieces of work, one T each, taken in turn: the host begins at most one piece ahead
// of the one whose end it waits for.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

namespace rk {

template <class T> class InTurn {
 public:
  InTurn() = default;
  InTurn(T first, T second) : values_{std::move(first), std::move(second)} {}

  // Of the piece of work that begins; at most two may not have ended.
  T& next() { return values_[begun_++ % values_.size()]; }
  // Of the piece of work that began first of those that have not ended, which ends.
  T& oldest() { return values_[ended_++ % values_.size()]; }

  std::array<T, 2>& both() { return values_; }

 private:
  std::array<T, 2> values_{};
  std::size_t begun_ = 0, ended_ = 0;
};

}  // namespace rk
