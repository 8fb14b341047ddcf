// How the emulated GPU rounds. By itself it adds up in double and rounds where a result is written,
// so that tests can ask for nearly the CPU's numbers. With a seed it rounds as a card does:
// operands of TF32 lose bits of their mantissas, and graphs and matrix products come out as if
// added up in another order. Our own kernels stay as they are: they run in the order of a card's
// team anyway.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace rk::host_gpu {

// RK_ROUNDING_SEED, until a test says otherwise.
std::optional<std::uint64_t> rounding_seed();
void round_as_a_card(std::optional<std::uint64_t> seed);

// What a tensor core reads of a float32 operand in TF32: 10 bits of mantissa. Even seeds round to
// nearest even; odd ones cut, as kernels do that convert nothing (PTX: the lower bits are ignored).
double as_tf32(double operand);

// A sum of float32 numbers in another order. Every addition is off by up to 2^-24 of the partial
// sum, either way, so n of them by about sqrt(n) times as much; and where the terms have either
// sign, partial sums are as large as the root of the sum of their squares. Nothing is off if the
// sum is a float32: then most likely no addition rounded, as where ties are made of such sums. The
// same sum is always off by the same: a card gives the same bits for the same input.
class Sum {
 public:
  void add(double term) {
    total_ += term;
    squares_ += term * term;
    ++terms_;
  }
  double total() const;

 private:
  double total_ = 0, squares_ = 0;
  std::int64_t terms_ = 0;
};

// The same for sums of `terms` products each that lie in one tensor, whose root mean square stands
// for the size of their partial sums.
void reorder(std::span<double> sums, double terms);

}  // namespace rk::host_gpu
