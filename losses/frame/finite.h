// Whether the numbers that a loss is given are numbers, in the host's memory.
#pragma once

#include "losses/frame/loss.h"

namespace rk {

// Far beyond any embedding, and so far from overflow that no sum over products of two numbers and a
// loss's parameters gets there.
template <class S> inline constexpr S kLargestInput = S(1e10);

// InputError naming the first row of the batch, the memory, the proxies or the scores that holds
// NaN, infinity or a number beyond kLargestInput (of scores: beyond the largest there is).
template <class S> void check_finite(const Context& context, const LossInput<S>& input);
// That error. what: "embedding", ...; row: of it; most: the largest number that is taken.
[[noreturn]] void fail_not_finite(const char* what, std::int64_t row, double most);

}  // namespace rk
