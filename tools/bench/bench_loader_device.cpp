#include "tools/bench/bench_loader_device.h"

#include "engine/device/cuda/timer.h"
#include "engine/device/precision.h"
#include "engine/system/signals.h"
#include "engine/tape/program.h"
#include "layers/gpu/input.h"
#include "layers/networks/network.h"
#include "tools/bench/timing.h"

namespace rk {
namespace {

constexpr int kLoaderWarmUp = 5;  // clocks rise, kernels are loaded
constexpr int kAlone = 5;         // repeats of the stages timed alone

}  // namespace

DeviceLoaderTimes time_device_loader(const Context& context, const DeviceLoaderShape& shape,
                                     const FloatTable& table, Loader& loader,
                                     std::span<const std::uint8_t> crops) {
  Parameters parameters;
  Program program(context, parameters, {.precision = shape.precision});
  const TensorId tensor = network_input(program, shape.batch, shape.side, shape.side);
  program.set_output(tensor);
  program.plan();
  GpuInput input(program, tensor, table.levels(), shape.batch);
  DeviceTimer timer(context.cuda());
  std::vector<double> stages, uploads, kernels;
  for (int repeat = -kLoaderWarmUp; repeat < kAlone; ++repeat) {
    // stage() copies into page-locked memory and starts the way up, for which take() waits.
    const double stage = milliseconds([&] { input.stage(crops); });
    timer.start();
    input.take();
    const double upload = timer.stop();
    timer.start();
    input.fill(0);
    const double kernel = timer.stop();
    if (repeat < 0) continue;
    stages.push_back(stage);
    uploads.push_back(upload);
    kernels.push_back(kernel);
  }
  DeviceLoaderTimes times;
  times.stage = summarize(stages).median / static_cast<double>(shape.batch);
  times.upload = summarize(uploads).median / static_cast<double>(shape.batch);
  times.input = summarize(kernels).median / static_cast<double>(shape.batch);
  for (int batch = 0; batch < shape.ready; ++batch) loader.next();
  std::int64_t done = 0;
  times.loader = milliseconds([&] {
    const auto stage_next = [&] {
      const Batch& next = *loader.next();
      input.stage(next.pixels);
      return next.count;
    };
    for (std::int64_t staged = stage_next(); staged > 0;) {
      stop_if_interrupted();
      input.take();
      input.fill(0);
      done += staged;
      staged = done < shape.images ? stage_next() : 0;  // overlaps the kernel
    }
    context.synchronize();
  });
  times.loader /= static_cast<double>(done);
  times.last = program.read(tensor);
  return times;
}

DeviceLoaderFloor device_loader_floor(Precision precision, std::int64_t side, double upload_rate,
                                      double copy_rate) {
  const std::int64_t pixels = side * side;
  const auto width = static_cast<std::int64_t>(size_of(image_type(precision)));
  DeviceLoaderFloor floor{.upload_rate = upload_rate, .copy_rate = copy_rate};
  floor.upload_bytes = pixels * 3;
  floor.input_bytes = pixels * (3 + width * image_channels(precision));
  floor.upload_ms = static_cast<double>(floor.upload_bytes) / upload_rate * 1e3;
  floor.input_ms = static_cast<double>(floor.input_bytes) / copy_rate * 1e3;
  return floor;
}

}  // namespace rk
