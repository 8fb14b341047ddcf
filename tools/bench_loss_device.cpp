#include "tools/bench_loss_device.h"

#include "engine/device_buffer.h"
#include "engine/device_timer.h"
#include "engine/dispatch.h"
#include "engine/error.h"
#include "engine/profile.h"
#include "losses/device_similarity.h"
#include "tools/signals.h"

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
    const auto grad = DeviceBuffer::of<float>(data.rows * data.dim);
    const std::int64_t columns = data.rows + data.memory;
    const auto matrix = DeviceBuffer::of<float>(data.rows * columns);
    const DeviceLossInput input{
        .dim = data.dim, .embeddings = embeddings.as<float>(), .memory = memory.as<float>()};
    const DeviceLossOutput output{.grad = grad.as<float>()};
    const DeviceSimilarity similarity{data.rows, columns, matrix.as<float>(), columns};
    const auto products = [&] {
      similarity.forward(cuda, input);
      similarity.backward(cuda, input, output.grad);
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
    constexpr std::size_t kBytes = std::size_t{512} << 20;
    const DeviceBuffer from(kBytes), to(kBytes);
    std::vector<double> copies;
    for (int repeat = 0; repeat < 5; ++repeat) {
      timer.start();
      cuda.copy(to.as<std::byte>(), from.as<std::byte>(), kBytes);
      copies.push_back(timer.stop());
    }
    return {summarize(total), summarize(alone), summarize(rows),
            2.0 * kBytes / summarize(copies).median * 1e3, loss->bytes()};
  }
}

}  // namespace rk
