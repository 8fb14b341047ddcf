// How much two labellings of the same rows say about each other.
#pragma once

#include <cstdint>
#include <span>

namespace rk {

// 2 I(U, V) / (H(U) + H(V)) of two labellings of the same rows, in [0, 1], from exact counts; 1 if
// both put all rows into one class.
double normalized_mutual_information(std::span<const std::int64_t> u,
                                     std::span<const std::int64_t> v);

}  // namespace rk
