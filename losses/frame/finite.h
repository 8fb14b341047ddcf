// Checks that a loss's inputs, in the host's memory, are finite and not too large.
#pragma once

#include "losses/frame/loss.h"

#include <cstdint>

namespace rk {

// Far beyond any embedding, yet small enough that no sum of products of two inputs, combined with a
// loss's parameters, overflows.
template <class S> inline constexpr S kLargestInput = S(1e10);

// Throws InputError naming the first row of the batch, the memory, the proxies or the scores that
// holds NaN, infinity or a number beyond kLargestInput (scores may be any finite number).
template <class S> void check_finite(const Context& context, const LossInput<S>& input);
// Throws that error. what: "embeddings", ...; row: the bad row; most: the largest number accepted.
[[noreturn]] void fail_not_finite(const char* what, std::int64_t row, double most);

}  // namespace rk
