#include "layers/gpu_noise.h"

#include "engine/device_buffer.h"
#include "engine/random.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

namespace rk::gpu {

void fill_with_noise(const CudaContext& cuda, void* device, std::int64_t count, DType type,
                     std::uint32_t stream) {
  CounterRandom random(0, stream, 0);
  const auto bytes = static_cast<std::size_t>(count) * size_of(type);
  const PinnedBuffer host(bytes);
  const auto next = [&] { return static_cast<float>(random.uniform(-1.0, 1.0)); };
  switch (type) {
    case DType::kFloat16:
      std::generate_n(host.as<__half>(), count, [&] { return __float2half_rn(next()); });
      break;
    case DType::kBfloat16:
      std::generate_n(host.as<__nv_bfloat16>(), count, [&] { return __float2bfloat16_rn(next()); });
      break;
    case DType::kUint8:
      std::generate_n(host.as<std::uint8_t>(), count,
                      [&] { return static_cast<std::uint8_t>(random.uniform(0.0, 256.0)); });
      break;
    default: std::generate_n(host.as<float>(), count, next);
  }
  cuda.upload(device, host.as<std::byte>(), bytes);
  cuda.synchronize();
}

}  // namespace rk::gpu
