#include "tools/bench/step/bench_step.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/device/precision.h"
#include "engine/system/signals.h"
#include "layers/networks/network.h"
#include "losses/registry.h"
#include "tools/bench/step/bench_step_device.h"
#include "tools/bench/step/step_floor.h"
#include "tools/bench/step/timed_step.h"
#include "tools/bench/timing.h"
#include "tools/bench/tuning/time_fusions.h"
#include "tools/bench/tuning/tune_plans.h"
#include "tools/cli/flags/image_size.h"
#include "tools/cli/json_file.h"
#include "tools/cli/messages.h"
#include "tools/cli/output_files.h"
#include "tools/cli/progress.h"
#include "tools/common/loss_notes.h"
#include "training/memory_fit.h"
#include "weights/architectures/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace rk {
namespace {

class BenchStep final : public Command {
 public:
  void add_options(Flags& flags) override {
    flags.add("--arch", spec_.arch, "network").check(one_of(network_names()));
    flags.add("--batch", batch_, "images a step").check(in_range(2, 1 << 16));
    flags.add("--image-size", size_, "height and width in pixels").check(in_range(8, 4096));
    flags.add("--dim", spec_.dim, "dimensions of the embedding").check(in_range(1, 1 << 16));
    flags.add("--bn", bn_, "batch norm on the batch's statistics, or frozen running ones")
        .check(one_of({"train", "frozen"}));
    flags.add("--loss", loss_, "ranking loss, NAME[:key=value,...]");
    flags.add("--repeats", repeats_, "timed steps; on the CPU each beside its floor")
        .check(in_range(1, 1000));
    flags.add_switch("--nodes", nodes_, "also the time of every node");
    flags.add("--precision", precision_, "on a GPU: fp32, tf32, fp16 or bf16")
        .check(one_of(precision_names()));
    flags.add("--graph", graph_, "on a GPU: replay a captured step, or start every kernel")
        .check(one_of({"on", "off"}));
    flags
        .add("--plans", plans_,
             "on a GPU: file that says which engine runs which convolution, and what "
             "normalises")
        .type_name("FILE");
    flags
        .add("--tune", tune_,
             "on a GPU: time up to 12 engines of every convolution and every way of batch "
             "normalisation first, and write the fastest to this file, for --plans; what the file "
             "has already is not timed again")
        .type_name("FILE");
    flags
        .add("--tune-seconds", tune_seconds_,
             "with --tune: start no new timing after this many seconds; another --tune goes on; 0: "
             "no "
             "limit")
        .check(in_range(0, 1000000));
    flags.add_switch(
        "--fusions", fusions_,
        "on a GPU, fp16 and --bn train: also what the step would gain if the convolutions "
        "computed their neighbours' batch norm, where cuDNN can");
  }
  bool runs_on_cuda() const override { return true; }
  const char* less_memory() const override { return "--batch, --image-size"; }

  void run(const CommonOptions& common) override {
    check_outputs({{"--tune", tune_, FileKind::kPlans}, {"--json", common.json, FileKind::kJson}},
                  {}, common.force);
    check_network_takes(spec_.arch, size_);
    if (device_of(common).cuda) {
      if (nodes_) fail<UsageError>("--nodes is for the CPU; see make profile-step for a GPU");
      if (tune_seconds_ > 0 && tune_.empty()) {
        fail<UsageError>("--tune-seconds: is for --tune FILE");
      }
      if (fusions_ && (precision_ != "fp16" || bn_ != "train")) {
        fail<UsageError>(
            "--fusions: the library has them with --precision fp16 and --bn train, here are {} and "
            "{}",
            precision_, bn_);
      }
      if (!plans_.empty() && !tune_.empty()) {
        fail<UsageError>("--plans, --tune: both say which file; leave --plans out");
      }
      advising_a_batch([&] { run_on_gpu(common); });
      return;
    }
    if (precision_ != "fp32" || !plans_.empty() || !tune_.empty() || tune_seconds_ > 0 ||
        fusions_ || graph_ != "on") {
      fail<UsageError>(
          "--precision, --plans, --tune, --tune-seconds, --fusions and --graph are for a GPU; add "
          "--device cuda");
    }
    advising_a_batch([&] { run_on_cpu(common); });
  }

 private:
  // The trainer advises a --chunk, which is for training alone.
  template <class F> void advising_a_batch(F&& f) const {
    try {
      f();
    } catch (const TooLittleMemory& error) {
      const bool some = error.chunk() >= 2;
      fail<DeviceError>("{} memory is too small for --batch {} at --image-size {}; use {}",
                        error.where() == MemoryOf::kGpu ? "the GPU's" : "this machine's", batch_,
                        size_,
                        some ? fmt::format("--batch {}", error.chunk()) : "a smaller --image-size");
    }
  }

  TrainerOptions trainer_options(const CommonOptions& common) const {
    TrainerOptions options;
    options.model.arch = spec_.arch;
    options.model.dim = spec_.dim;
    options.model.crop = options.model.resize = size_;
    options.batchnorm = bn_ == "train" ? BatchNormMode::kBatch : BatchNormMode::kRunning;
    options.loss = parse_loss(loss_);
    if (options.loss.entry->kind == LossKind::kScores) {
      fail<UsageError>("--loss {}: takes scores instead of embeddings; see `bench rank`", loss_);
    }
    for (const std::string& line : loss_notes(options.loss, loss_)) note(line);
    options.batch = batch_;
    options.classes = (batch_ + 1) / 2;
    options.seed = common.seed;
    options.precision = precision_of(precision_);
    options.capture = graph_ == "on";
    // Practically 0: the same work, but the weights stay constant for the whole run.
    options.schedule.rate = 1e-30;
    return options;
  }

  double images_per_second(const Timing& step) const {
    return 1e3 * static_cast<double>(batch_) / step.median;
  }

  // What the result says on either device.
  nlohmann::json keys_of(const Timing& step, std::size_t peak) const {
    nlohmann::json json = {{"arch", spec_.arch},
                           {"batch", batch_},
                           {"image_size", size_},
                           {"bn", bn_},
                           {"loss", loss_},
                           {"repeats", repeats_},
                           {"images_per_second", images_per_second(step)},
                           {"peak_bytes", peak}};
    put(json, "step_ms", step);
    return json;
  }

  void run_on_gpu(const CommonOptions& common) {
    const Context context(common.threads, device_of(common));
    TrainerOptions options = trainer_options(common);
    if (!tune_.empty()) {
      const double seconds =
          tune_seconds_ > 0 ? tune_seconds_ : std::numeric_limits<double>::infinity();
      const int left =
          tune_plans(context, options, repeats_, seconds, tune_, [](const TunedGraph& graph) {
            print("{:60} {:8.4f} ms, without a file {:8.4f}{}{}  {}\n", graph.graph, graph.ms,
                  graph.first_ms, graph.timed.empty() ? "" : ", ", graph.timed, graph.engine);
            std::fflush(stdout);
          });
      if (left > 0) {
        print("--tune-seconds {} are over, {} not tuned; another --tune {} goes on with them\n",
              tune_seconds_, counted(left, "graph"), tune_);
      }
    }
    const std::string& plans = tune_.empty() ? plans_ : tune_;
    const DeviceStepTimes times = time_device_step(context, options, repeats_, common.seed, plans);
    const double share = times.floor_ms / times.step.median;
    print(
        "{}: {} batch {} at {}x{}, {}, batch norm {}, {}, graph {}\n"
        "step {:.3f} ms ({:.3f} to {:.3f}), {:.1f} images/s; {:.3f} ms by the GPU's clock, over {} "
        "steps; the convolutions' roofline {:.3f} ms (copies {:.0f} GB/s{}); share {:.1f} %; "
        "{:.0f} MiB\n",
        times.device_name, spec_.arch, batch_, size_, size_, precision_, bn_, loss_, graph_,
        times.step.median, times.step.least, times.step.most, images_per_second(times.step),
        times.card_ms, DeviceStepTimes::kTogether, times.floor_ms, times.copy_rate / 1e9,
        times.math_rate > 0 ? fmt::format(", {:.0f} TFLOP/s", 2 * times.math_rate / 1e12) : "",
        100 * share, static_cast<double>(times.bytes) / (1 << 20));
    print("{}; ready after {:.1f} s\n", times.ways, times.start_seconds);
    if (options.capture && !times.captured) {
      print("no CUDA graph: every kernel was started by itself\n");
    }
    if (!plans.empty()) {
      print("{} names an engine for {}, {} of them taken\n", plans,
            counted(times.plans.named, "graph"), times.plans.taken);
    }
    Fusions fusions;
    if (fusions_) fusions = look_at_fusions(context, options, times);
    nlohmann::json json = keys_of(times.step, times.bytes);
    json.update({{"precision", precision_},
                 {"graph", graph_},
                 {"card_ms", times.card_ms},
                 {"floor_ms", times.floor_ms},
                 {"share", share},
                 {"device_name", times.device_name},
                 {"ways", times.ways},
                 {"start_seconds", times.start_seconds},
                 {"captured", times.captured}});
    if (!plans.empty()) {
      json["plans"] = {{"file", plans}, {"named", times.plans.named}, {"taken", times.plans.taken}};
    }
    if (fusions_) {
      json["fusions"] = fusions.lines;
      json["all_fusions"] = fusions.all;
    }
    write_result(common, context.threads(), std::move(json));
    if (fusions_ && !fusions.all) throw Interrupted("stopped before all fusions were timed");
  }

  struct Fusions {
    nlohmann::json lines = nlohmann::json::array();
    bool all = false;  // a signal did not stop the timing
  };

  // Prints a line for each fusion as soon as it is timed, then the total of each kind; returns the
  // same for the JSON, also of what was timed before a signal: the largest fusions come first.
  Fusions look_at_fusions(const Context& context, const TrainerOptions& options,
                          const DeviceStepTimes& step) const {
    constexpr const char* kRow = "{:26}{:>6}{:>10}{:>10}{:>10}{:>10}  {}\n";
    const auto ms = [](double value) {
      return std::isfinite(value) ? fmt::format("{:.4f}", value) : std::string("none");
    };
    print(kRow, "ms", "times", "in parts", "fused", "spared", "gain", "in place of");
    Fusions fusions;
    std::map<FusionKind, double> gains;
    const auto report = [&](const TimedFusion& timed) {
      const Fusion& fusion = timed.fusion;
      const bool exists = std::isfinite(timed.fused_ms);
      const std::string kind(name_of(fusion.kind)), parts = fusion.parts[0].text();
      print(kRow, kind, fusion.count, ms(timed.parts_ms), ms(timed.fused_ms), ms(timed.saved_ms),
            exists ? ms(timed.gain_ms()) : "", parts);
      gains[fusion.kind] += exists ? std::max(0.0, timed.gain_ms()) : 0.0;
      nlohmann::json& json = fusions.lines;
      json.push_back({{"fusion", kind},
                      {"in_place_of", parts},
                      {"count", fusion.count},
                      {"parts_ms", timed.parts_ms},
                      {"saved_ms", timed.saved_ms}});
      if (exists) json.back()["fused_ms"] = timed.fused_ms;
      if (exists) json.back()["gain_ms"] = timed.gain_ms();
    };
    std::string stopped;
    try {
      time_fusions(context, options, repeats_, step.copy_rate, report);
      fusions.all = true;
    } catch (const Interrupted&) {
      stopped = fmt::format("; stopped after {}", counted(std::ssize(fusions.lines), "fusion"));
    }
    std::string sums;
    for (const auto& [kind, gain] : gains) {
      sums += fmt::format("{} {:.3f} ms by {}", sums.empty() ? "" : ",", gain, name_of(kind));
    }
    print("of a step's {:.3f} ms, fusing only where it gains spares{}{}\n", step.card_ms,
          sums.empty() ? " nothing" : sums, stopped);
    return fusions;
  }

  void run_on_cpu(const CommonOptions& common) {
    const Context context(common.threads);
    TimedStep timed(context, trainer_options(common), common.seed);
    StepFloor floor(timed.trainer());
    std::vector<double> steps, floors, shares;
    std::int64_t passes = 0;  // each repetition has one of the step and one of the floor
    Progress progress("timing", 1 + 2 * static_cast<std::int64_t>(repeats_), "steps", common.quiet);
    const auto passed = [&](double ms) {
      progress.update(++passes);
      return ms;
    };
    passed(timed.run());
    for (int r = 0; r < repeats_; ++r) {
      stop_if_interrupted();
      steps.push_back(passed(timed.run()));
      floors.push_back(passed(floor.pass()));
      shares.push_back(floors.back() / steps.back());
    }
    progress.finish();
    const Timing step_time = summarize(steps), floor_time = summarize(floors);
    const Timing share = summarize(shares);

    const std::size_t peak = timed.reserved();
    print(
        "{} batch {} at {}x{}, batch norm {}, {}, {}\n"
        "step {:.1f} ms ({:.1f} to {:.1f}), {:.1f} images/s; the same convolutions and matrix "
        "products "
        "alone {:.1f} ms ({:.1f} to {:.1f}); share {:.1f} % ({:.1f} to {:.1f}); {:.0f} MiB\n",
        spec_.arch, batch_, size_, size_, bn_, loss_, counted(context.threads(), "thread"),
        step_time.median, step_time.least, step_time.most, images_per_second(step_time),
        floor_time.median, floor_time.least, floor_time.most, 100 * share.median, 100 * share.least,
        100 * share.most, static_cast<double>(peak) / (1 << 20));
    floor.print_table(nodes_);

    nlohmann::json json = keys_of(step_time, peak);
    put(json, "floor_ms", floor_time);
    put(json, "share", share);
    write_result(common, context.threads(), std::move(json));
  }

  NetworkSpec spec_;
  std::int64_t batch_ = 16;
  std::int64_t size_ = 224;
  std::string bn_ = "train";
  std::string loss_ = "fastap";
  int repeats_ = 5;
  std::string precision_ = "fp32";
  std::string graph_ = "on";
  std::string plans_, tune_;
  int tune_seconds_ = 0;  // 0: no limit
  bool fusions_ = false;
  bool nodes_ = false;
};

}  // namespace

std::unique_ptr<Command> make_bench_step() { return std::make_unique<BenchStep>(); }

}  // namespace rk
