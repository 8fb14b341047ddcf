#include "tools/train/trainer_within_memory.h"

#include "data/loader/loader.h"
#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/device/precision.h"
#include "engine/group/process_group.h"
#include "retrieval/evaluate.h"
#include "tools/train/settings/train_options.h"
#include "training/loss_bytes.h"
#include "training/memory_fit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

namespace rk {
namespace {

// Bytes needed besides the trainer.
struct BesideTrainer {
  LoadingBytes loading;  // zeros on a GPU
  std::int64_t evaluation = 0;
  std::int64_t all() const {
    return loading.ring + loading.evaluation_ring + loading.pictures + loading.cache + evaluation;
  }
};

std::int64_t evaluation_batch(const TrainSettings& settings, const Dataset& held_out) {
  return batch_of(settings.eval_batch, held_out.size());
}

// The bytes that the evaluation program reserves. On a GPU the program is really planned for this
// and then freed; its graphs are found again later.
std::int64_t evaluation_bytes(const TrainerRequest& request) {
  Parameters none;
  return static_cast<std::int64_t>(
      plan_evaluation(request.context, none, request.settings, *request.held_out).bytes);
}

// Ordered pairs of pictures of one class.
std::int64_t positive_pairs(const Dataset& data) {
  std::int64_t pairs = 0;
  for (const auto& images : data.members()) {
    const std::int64_t count = std::ssize(images);
    pairs += count * (count - 1);
  }
  return pairs;
}

BesideTrainer bytes_beside(const TrainerRequest& request, const ProcessGroup& processes) {
  const TrainSettings& settings = request.settings;
  const auto side = static_cast<std::int64_t>(settings.image_size);
  BesideTrainer bytes;
  if (request.context.on_gpu()) {
    if (request.held_out == nullptr) return bytes;
    // The network and its pictures, and behind them their embeddings.
    constexpr std::int64_t kWidestFeatures = 2048;
    const std::int64_t dim = settings.dim > 0 ? settings.dim : kWidestFeatures;
    const Dataset& held_out = *request.held_out;
    bytes.evaluation = evaluation_bytes(request) +
                       2 * evaluation_batch(settings, held_out) * 3 * side * side +
                       gpu_evaluation_bytes(held_out.size(), dim, positive_pairs(held_out));
    return bytes;
  }
  bytes.loading = request.loading;
  if (!processes.first()) {
    bytes.loading.evaluation_ring = 0;  // the first one alone evaluates
  } else if (request.held_out != nullptr) {
    bytes.evaluation = evaluation_bytes(request);
  }
  return bytes;
}

// The parts that flags can make smaller, if they are large enough to mention.
std::string larger_parts(const BesideTrainer& beside, const TrainerRequest& request,
                         const TrainerOptions& options) {
  constexpr std::int64_t kTold = std::int64_t{64} << 20;
  const TrainSettings& settings = request.settings;
  std::vector<std::string> parts;
  const auto add = [&](std::int64_t bytes, const char* what, const char* flag, std::int64_t value) {
    if (bytes < kTold) return;
    parts.push_back(fmt::format("{:.2f} GiB are for {} ({}{} {})",
                                static_cast<double>(bytes) / (1 << 30), what,
                                value > 1 ? "less below " : "", flag, value));
  };
  add(loss_bytes(options, request.context.on_gpu()), "the loss",
      settings.memory > 0 ? "--memory" : "--batch",
      settings.memory > 0 ? settings.memory : settings.batch);
  const LoadingBytes& loading = beside.loading;
  // More than there are held-out images means all of them.
  const std::int64_t evaluated =
      request.held_out == nullptr ? 0 : evaluation_batch(settings, *request.held_out);
  add(beside.evaluation + loading.evaluation_ring, "evaluation", "--eval-batch", evaluated);
  add(loading.cache, "decoded pictures", "--cache", settings.cache);
  add(loading.pictures, "pictures being decoded", "--workers", loading_threads(settings.workers));
  if (parts.empty()) return "";
  return fmt::format("; of what is needed, {}", fmt::join(parts, " and "));
}

}  // namespace

PlannedEvaluation plan_evaluation(const Context& context, Parameters& parameters,
                                  const TrainSettings& settings, const Dataset& held_out) {
  const auto plan = [&](std::int64_t batch, Parameters& of) {
    PlannedEvaluation out{std::make_unique<Embedder>(context, of, model_description(settings),
                                                     batch, precision_of(settings.precision)),
                          0};
    out.bytes = out.embedder->plan();
    return out;
  };
  std::int64_t batch = evaluation_batch(settings, held_out);
  std::string why;
  try {
    return plan(batch, parameters);
  } catch (const DeviceError& error) {
    why = error.what();
  }
  while (batch > 1) {
    batch /= 2;
    try {
      Parameters none;
      plan(batch, none);
    } catch (const DeviceError&) {
      continue;
    }
    fail<DeviceError>("--eval-batch {}: as many images at a time are not possible ({}); use {}{}",
                      settings.eval_batch, why, batch, batch > 1 ? " or fewer" : "");
  }
  fail<DeviceError>("--eval-batch {}: {}", settings.eval_batch, why);
}

LoadingBytes loading_bytes(const TrainSettings& settings, const Dataset& train,
                           const Dataset* held_out, int processes) {
  const std::int64_t ahead = LoaderOptions{}.prefetch;
  const std::int64_t pixels = std::int64_t{3} * settings.image_size * settings.image_size;
  LoadingBytes bytes;
  bytes.ring = ahead * settings.batch / processes * pixels;
  if (held_out != nullptr) {
    bytes.evaluation_ring = ahead * evaluation_batch(settings, *held_out) * pixels;
  }
  bytes.cache = settings.cache << 20;
  try {
    const auto first = static_cast<std::int64_t>(train.load(0).bytes());
    bytes.cache = std::min(bytes.cache, train.size() * first);
    // Turning holds a picture twice. Training's pictures stay in memory while the held-out ones are
    // read.
    const std::int64_t at_once = model_description(settings).upright ? 2 : 1;
    bytes.pictures =
        loading_threads(settings.workers) * first * (at_once + (held_out != nullptr ? 1 : 0));
  } catch (const InputError&) {
    // Then the cache is counted at its limit.
  }
  return bytes;
}

std::unique_ptr<Trainer> trainer_within_memory(const TrainerRequest& request,
                                               TrainerOptions options) {
  const TrainSettings& settings = request.settings;
  const BesideTrainer beside = bytes_beside(request, *options.processes);
  options.other_bytes = beside.all();
  while (true) {
    try {
      return std::make_unique<Trainer>(request.context, options);
    } catch (const TooLittleMemory& little) {
      const std::int64_t now = options.chunk > 0 ? options.chunk : settings.batch;
      if (!request.open_chunk || !options.processes->alone() || little.chunk() < 1 ||
          little.chunk() >= now) {
        throw TooLittleMemory(little.what() + larger_parts(beside, request, options),
                              little.chunk(), little.where());
      }
      options.chunk = little.chunk();
      note(fmt::format(
          "all {0} images of a batch at once do not fit in the free memory of {3}: they go through "
          "the network {1} at a time (--chunk {1}), all but the last computed twice{2}; --batch "
          "and --chunk "
          "choose otherwise",
          settings.batch, options.chunk,
          settings.bn == "train" ? ", with batch norm's statistics of a chunk" : "",
          little.where() == MemoryOf::kGpu ? "the GPU" : "this machine"));
    }
    request.settings.chunk = options.chunk;
  }
}

}  // namespace rk
