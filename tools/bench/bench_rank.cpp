#include "tools/bench/bench_rank.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/base/note.h"
#include "engine/base/parallel.h"
#include "engine/base/random.h"
#include "losses/registry.h"
#include "tools/bench/gpu_rates.h"
#include "tools/bench/rank_timing.h"
#include "tools/bench/timing.h"
#include "tools/bench/work_timer.h"
#include "tools/cli/json_file.h"
#include "tools/cli/messages.h"
#include "tools/common/loss_notes.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace rk {
namespace {

class BenchRank final : public Command {
 public:
  void add_options(Flags& flags) override {
    flags.add("--loss", loss_, "what is computed from the ranking, NAME[:key=value,...]")
        .check(shown_values({"rambo_map", "rambo_apc", "rambo_map_apc"}));
    flags.add("--n", n_, "scores in the ranking").check(in_range(2, 1 << 30));
    flags.add("--repeats", repeats_, "timed runs").check(in_range(1, 10000));
  }

  bool runs_on_cuda() const override { return true; }
  const char* less_memory() const override { return "--n"; }

  void run(const CommonOptions& common) override {
    const LossSpec spec = parse_loss(loss_);
    if (spec.entry->kind != LossKind::kScores) {
      fail<UsageError>("bench rank: {} ranks no scores; use `bench loss`", spec.entry->name);
    }
    for (const std::string& line : loss_notes(spec, loss_)) note(line);
    const Context context(common.threads, device_of(common));
    const int threads = context.threads();
    const auto size = static_cast<std::size_t>(n_);
    std::vector<float> scores(size);
    std::vector<std::uint8_t> targets(size);
    parallel_for(threads, n_, [&](std::int64_t i, int) {
      CounterRandom random(common.seed, 0, static_cast<std::uint64_t>(i));
      targets[at(i)] = random.below(10) == 0 ? 1 : 0;
      // Positives score a little higher, so that the ranking is neither perfect nor hopeless.
      scores[at(i)] = static_cast<float>(random.uniform(-1, 1) + (targets[at(i)] != 0 ? 0.3 : 0));
    });
    const RankTimes times = time_ranking(context, spec, scores, targets, repeats_);
    if (context.on_gpu()) return report_gpu(common, spec, context, times);
    print("{}  {}, {}\ntotal {:.2f} ms ({:.2f} to {:.2f})  sort alone {:.2f} ms\n", spec.text(),
          counted(n_, "score"), counted(threads, "thread"), times.total.median, times.total.least,
          times.total.most, times.sort.median);
    write_result(common, threads, keys_of(spec, times, times.bytes + 9 * n_));
  }

 private:
  // What the result says on either device.
  nlohmann::json keys_of(const LossSpec& spec, const RankTimes& times, std::int64_t peak) const {
    nlohmann::json json = {
        {"loss_name", spec.text()}, {"n", n_}, {"repeats", repeats_}, {"peak_bytes", peak}};
    put(json, "total_ms", times.total);
    put(json, "sort_ms", times.sort);
    return json;
  }

  // The floor: the least traffic of one radix sort of pairs at the rate of a copy (each pass of
  // 8-bit digits reads and writes the pairs, and all keys are counted once before), plus the cost
  // of the launches.
  void report_gpu(const CommonOptions& common, const LossSpec& spec, const Context& context,
                  const RankTimes& times) const {
    const CudaContext& gpu = context.cuda();
    constexpr double kSortBytes = 4 * 2 * 8 + 4;
    const double rate = gpu_copy_rate(gpu);
    const double sort_floor = static_cast<double>(n_) * kSortBytes / rate * 1e3;
    const double floor = sort_floor + times.kernels * kLaunchMs;
    nlohmann::json json = keys_of(spec, times, times.bytes + 8 * n_);
    json.update({{"device_name", gpu.name()},
                 {"copy_bytes_per_second", rate},
                 {"kernels", times.kernels},
                 {"sort_floor_ms", sort_floor},
                 {"floor_ms", floor},
                 {"share", floor / times.total.median}});
    print(
        "{}  {} scores, {}\ntotal {:.3f} ms ({:.3f} to {:.3f})  sort alone {:.3f} ms  floor {:.3f} "
        "ms  share {:.0f} %\n",
        spec.text(), n_, gpu.name(), times.total.median, times.total.least, times.total.most,
        times.sort.median, floor, 100 * floor / times.total.median);
    write_result(common, context.threads(), std::move(json));
  }

  std::string loss_ = "rambo_map";
  std::int64_t n_ = 1000000;
  int repeats_ = 7;
};

}  // namespace

std::unique_ptr<Command> make_bench_rank() { return std::make_unique<BenchRank>(); }

}  // namespace rk
