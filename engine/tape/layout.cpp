#include "engine/tape/layout.h"

#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>

namespace rk {
namespace {

// Calls copy(stored offset, NHWC offset) for every run of `block` channels.
template <class F> void for_each_run(const ImageLayout& layout, F&& copy) {
  const std::int64_t channels = layout.channels();
  for (std::int64_t n = 0; n < layout.batch; ++n) {
    for (std::int64_t g = 0; g < layout.blocks; ++g) {
      const std::int64_t plane = (n * layout.blocks + g) * layout.plane();
      for (std::int64_t p = 0; p < layout.pixels(); ++p) {
        copy(plane + p * layout.block, (n * layout.pixels() + p) * channels + g * layout.block);
      }
    }
  }
}

}  // namespace

void to_nhwc(const ImageLayout& layout, const float* stored, float* nhwc) {
  for_each_run(layout, [&](std::int64_t from, std::int64_t to) {
    std::copy_n(stored + from, layout.block, nhwc + to);
  });
}

void from_nhwc(const ImageLayout& layout, const float* nhwc, float* stored) {
  for_each_run(layout, [&](std::int64_t to, std::int64_t from) {
    std::copy_n(nhwc + from, layout.block, stored + to);
  });
}

std::int64_t convolution_block() {
  // Each value is a bit set that includes the bits of all instruction sets it implies.
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto includes = [isa](dnnl::cpu_isa set) {
    return isa == static_cast<unsigned>(dnnl::cpu_isa::all) ||
           (isa & static_cast<unsigned>(set)) == static_cast<unsigned>(set);
  };
  if (includes(dnnl::cpu_isa::avx512_core)) return 16;
  if (includes(dnnl::cpu_isa::avx2)) return 8;
  return 0;
}

}  // namespace rk
