#include "layers/onednn/convolution_block.h"

#include "engine/device/onednn_versions.h"

namespace rk {

std::int64_t convolution_block() {
  if (onednn_uses(dnnl::cpu_isa::avx512_core)) return 16;
  if (onednn_uses(dnnl::cpu_isa::avx2)) return 8;
  return 0;
}

}  // namespace rk
