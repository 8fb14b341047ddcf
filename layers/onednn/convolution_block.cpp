#include "layers/onednn/convolution_block.h"

#include <oneapi/dnnl/dnnl.hpp>

namespace rk {

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
