#include "tools/bench/bench_loss_device.h"

#include "engine/base/error.h"
#include "engine/device/cuda/buffer.h"
#include "engine/device/cuda/timer.h"
#include "engine/device/dispatch.h"
#include "engine/driver/profile.h"
#include "engine/system/signals.h"
#include "losses/cuda/similarity.h"
#include "tools/cli/gpu.h"

#include <optional>

namespace rk {
namespace {

constexpr int kWarmUp = 20;  // clocks rise, kernels are loaded

}  // namespace

DeviceLossTimes time_device_loss(int device, const LossSpec& spec, const LossData<float>& data,
                                 int repeats) {
  if constexpr (!kHasCuda) {
    fail<DeviceError>("this build has no GPU code; use --device cpu");
  } else {
    const CudaContext cuda(device);
    const auto loss = make_device_loss(cuda, spec);
    loss->plan(data.shape());
    const auto embeddings = DeviceBuffer::copy_of(data.embeddings);
    const auto memory = DeviceBuffer::copy_of(data.memory_embeddings);
    const auto given_proxies = DeviceBuffer::copy_of(data.proxies);
    const bool proxies = spec.entry->kind == LossKind::kProxies;
    const std::int64_t n = data.rows, d = data.dim, c = data.classes;
    const auto grad = DeviceBuffer::of<float>(n * d);
    const auto grad_proxies = DeviceBuffer::of<float>(proxies ? c * d : 0);
    const std::int64_t columns = proxies ? c : n + data.memory;
    const auto matrix = DeviceBuffer::of<float>(n * columns);
    const DeviceLossInput input{.dim = d,
                                .embeddings = embeddings.as<float>(),
                                .memory = memory.as<float>(),
                                .proxies = given_proxies.as<float>()};
    const DeviceLossOutput output{.grad = grad.as<float>(),
                                  .grad_proxies = grad_proxies.as<float>()};
    const DeviceSimilarity similarity{n, columns, matrix.as<float>(), columns};
    const auto products = [&] {
      if (proxies) {
        auto* s = matrix.as<float>();
        cuda.gemm(Op::kNone, Op::kTranspose, n, c, d, 1.0F, input.embeddings, d, input.proxies, d,
                  0.0F, s, c);
        cuda.gemm(Op::kNone, Op::kNone, n, d, c, 1.0F, s, c, input.proxies, d, 0.0F, output.grad,
                  d);
        cuda.gemm(Op::kTranspose, Op::kNone, c, d, n, 1.0F, s, c, input.embeddings, d, 0.0F,
                  output.grad_proxies, d);
      } else {
        similarity.forward(cuda, input);
        similarity.backward(cuda, input, output.grad);
      }
    };
    loss->prepare(data.input());
    DeviceTimer timer(cuda);
    std::vector<double> total, alone, rows;
    for (int repeat = -kWarmUp; repeat < repeats; ++repeat) {
      stop_if_interrupted();
      std::optional<ProfileRange> range(std::in_place, kMeasuredRange, repeat == repeats - 1);
      timer.start();
      loss->launch(input, output);
      const double both = timer.stop();
      range.reset();
      timer.start();
      products();
      const double floor = timer.stop();
      if (repeat < 0) continue;
      total.push_back(both);
      alone.push_back(floor);
      rows.push_back(both - floor);
    }
    return {summarize(total), summarize(alone), summarize(rows), gpu_copy_rate(cuda),
            loss->bytes(),    loss->kernels(),  cuda.name()};
  }
}

}  // namespace rk
