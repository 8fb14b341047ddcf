#include "tools/bench/bench_loss.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/base/note.h"
#include "engine/base/random.h"
#include "engine/driver/device.h"
#include "engine/driver/profile.h"
#include "engine/system/signals.h"
#include "tools/bench/cpu_rates.h"
#include "tools/bench/gpu_rates.h"
#include "tools/bench/loss_products.h"
#include "tools/bench/work_timer.h"
#include "tools/cli/json_file.h"
#include "tools/cli/messages.h"
#include "tools/common/loss_file.h"
#include "tools/common/loss_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace rk {
namespace {

// Classes of `per_class` unit vectors around random centres, some far from their own centre.
LossData<float> make_data(const LossEntry& entry, std::int64_t n, std::int64_t memory,
                          std::int64_t dim, std::int64_t per_class, std::uint64_t seed) {
  LossData<float> data;
  data.rows = n;
  data.dim = dim;
  data.memory = memory;
  data.classes = divide_up(n + memory, per_class);
  const auto vector_of = [&](std::uint32_t stream, std::int64_t index, std::vector<float>& out) {
    CounterRandom random(seed, stream, static_cast<std::uint64_t>(index));
    for (std::int64_t d = 0; d < dim; ++d) out.push_back(static_cast<float>(random.normal()));
  };
  std::vector<float> centres;
  for (std::int64_t c = 0; c < data.classes; ++c) vector_of(0, c, centres);
  for (std::int64_t i = 0; i < n + memory; ++i) {
    std::vector<float> e;
    vector_of(1, i, e);
    const std::int64_t label = i / per_class;
    float square = 0;
    for (std::int64_t d = 0; d < dim; ++d) {
      float& x = e[static_cast<std::size_t>(d)];
      x += centres[static_cast<std::size_t>(label * dim + d)];
      square += x * x;
    }
    for (float& x : e) x /= std::sqrt(square);
    auto& rows = i < n ? data.embeddings : data.memory_embeddings;
    rows.insert(rows.end(), e.begin(), e.end());
    (i < n ? data.labels : data.memory_labels).push_back(label);
  }
  if (entry.kind == LossKind::kProxies) data.proxies = std::move(centres);
  return data;
}

// The data, the loss's inputs and its gradients in the memory of a context's device.
struct LossMemory {
  LossMemory(const Context& context, const LossData<float>& data)
      : embeddings(context.copy_of(data.embeddings)),
        memory(context.copy_of(data.memory_embeddings)),
        proxies(context.copy_of(data.proxies)),
        grad(context.copy_of(data.embeddings)),
        grad_proxies(context.copy_of(data.proxies)),
        input(data.input()) {
    input.embeddings = embeddings.as<float>();
    input.memory_embeddings = memory.as<float>();
    input.proxies = proxies.as<float>();
    output.grad = grad.as<float>();
    output.grad_proxies = grad_proxies.as<float>();
  }

  Memory embeddings, memory, proxies, grad, grad_proxies;
  LossInput<float> input;
  LossOutput<float> output;
};

class BenchLoss final : public Command {
 public:
  void add_options(Flags& flags) override {
    flags.add("--loss", loss_, "NAME[:key=value,...]").required();
    flags.add("--n", n_, "batch size").check(in_range(2, 1 << 20));
    flags.add("--memory", memory_, "columns of memory").check(in_range(0, 1 << 24));
    flags.add("--dim", dim_, "dimensions").check(in_range(1, 1 << 16));
    flags.add("--per-class", per_class_, "items a class").check(in_range(1, 1 << 20));
    flags.add("--repeats", repeats_, "timed runs").check(in_range(1, 10000));
  }

  bool runs_on_cuda() const override { return true; }
  const char* less_memory() const override { return "--n, --memory, --dim"; }

  void run(const CommonOptions& common) override {
    const LossSpec spec = parse_loss(loss_);
    if (spec.entry->kind == LossKind::kScores) {
      fail<UsageError>("bench loss: {} ranks scores; use `bench rank`", spec.entry->name);
    }
    if (memory_ > 0 && !takes_memory(spec.entry->kind)) {
      fail<UsageError>("--memory: {} has no gallery that it could add to; leave it out",
                       spec.entry->name);
    }
    for (const std::string& line : loss_notes(spec, loss_)) note(line);
    const LossData<float> data = make_data(*spec.entry, n_, memory_, dim_, per_class_, common.seed);
    const Context context(common.threads, device_of(common));
    report(common, context, spec, measure(context, spec, data));
  }

 private:
  struct Measured {
    Timing total, products, rows;
    double floor_ms = 0;
    std::string floor_of;
    std::int64_t bytes = 0;
    nlohmann::json more;
  };

  // Exponentials of all rows of a batch; 0: the floor counts the traffic of the matrix instead.
  double sigmoids(const LossEntry& entry) const {
    const double columns = static_cast<double>(n_ + memory_);
    const double positives = std::min<double>(static_cast<double>(per_class_), columns) - 1;
    return entry.sigmoids != nullptr ? entry.sigmoids(columns, positives) * static_cast<double>(n_)
                                     : 0;
  }
  // Bytes of the matrix read, and also written if the gradient overwrites it.
  double matrix_bytes(bool written) const {
    return (written ? 2 : 1) * sizeof(float) * static_cast<double>(n_) *
           static_cast<double>(n_ + memory_);
  }

  // On a GPU the times exclude uploading the labels, as in a training step; on the CPU there is no
  // upload, and the times include the work on the labels.
  Measured measure(const Context& context, const LossSpec& spec,
                   const LossData<float>& data) const {
    LossMemory memory(context, data);
    const auto loss = make_loss<float>(spec);
    loss->allocate(context, data.shape());
    loss->prepare(context, memory.input);
    LossProducts products(context, memory.input, memory.output, data.shape(), *spec.entry);
    const auto value_and_gradient = [&] {
      if (!context.on_gpu()) return loss->run(context, memory.input, memory.output);
      loss->launch(context, memory.input, memory.output);
    };
    WorkTimer timer(context);
    // Warm-up: wakes the threads and touches the memory; on a GPU clocks rise and kernels are
    // loaded.
    const int warm_up = context.on_gpu() ? 20 : 1;
    std::vector<double> totals, gemms, plain, rows;
    for (int repeat = -warm_up; repeat < repeats_; ++repeat) {
      stop_if_interrupted();
      std::optional<ProfileRange> range(std::in_place, kMeasuredRange, repeat == repeats_ - 1);
      // Alternating, so that a busy machine slows both alike.
      const double total = timer.milliseconds(value_and_gradient);
      range.reset();
      const double gemm = timer.milliseconds([&] { products.run(); });
      const double one = timer.milliseconds([&] { products.plain(); });
      if (repeat < 0) continue;
      totals.push_back(total);
      gemms.push_back(gemm);
      plain.push_back(one);
      rows.push_back(total - gemm);
    }
    const auto embedding_bytes = static_cast<std::int64_t>(sizeof(float) * data.embeddings.size());
    Measured out;
    out.total = summarize(totals);
    out.products = summarize(gemms);
    out.rows = summarize(rows);
    out.bytes = loss->bytes() + (context.on_gpu() ? 0 : 2 * embedding_bytes);
    out.more["sigmoids"] = sigmoids(*spec.entry);
    if (context.on_gpu()) {
      const int launches =
          launches_of(context, value_and_gradient) - launches_of(context, [&] { products.run(); });
      set_floor_on_gpu(context, *spec.entry, launches, out);
    } else {
      set_floor_on_cpu(context, *spec.entry, products, summarize(plain).median, out);
    }
    return out;
  }

  // The floor on a GPU: half of S = E E^T and the whole gradient, which is dense there for every
  // loss, at the rate of the two GEMMs; plus the longer of the matrix at the rate of a copy and the
  // sigmoids at two special-function evaluations each (2e12 per second on an H200); plus the cost
  // of the launches other than the products.
  void set_floor_on_gpu(const Context& context, const LossEntry& entry, int launches,
                        Measured& out) const {
    constexpr double kSigmoidsPerSecond = 2e12;
    const double rate = gpu_copy_rate(context.cuda());
    const double count = sigmoids(entry);
    const double matrix_ms = matrix_bytes(true) / rate * 1e3;
    const double sigmoid_ms = count / kSigmoidsPerSecond * 1e3;
    const double columns = static_cast<double>(n_ + memory_);
    const double useful =
        entry.kind == LossKind::kProxies ? 1 : 1 - static_cast<double>(n_) / (4 * columns);
    out.floor_ms =
        useful * out.products.median + std::max(matrix_ms, sigmoid_ms) + launches * kLaunchMs;
    out.floor_of =
        fmt::format("useful products + {} + {} launches",
                    matrix_ms > sigmoid_ms
                        ? fmt::format("the matrix read and written at {:.0f} GB/s", rate * 1e-9)
                        : fmt::format("{:.3g} sigmoids at 2 T/s", count),
                    launches);
    out.more.update({{"copy_bytes_per_second", rate},
                     {"kernels", launches},
                     {"device_name", context.gpu_name()}});
  }

  // The floor on a CPU: the useful products at the rate of the plain GEMM; a sparse gradient's rows
  // at the rate of a copy in place of the second product; plus the sigmoids, or the traffic of the
  // matrix.
  void set_floor_on_cpu(const Context& context, const LossEntry& entry,
                        const LossProducts& products, double plain_ms, Measured& out) const {
    const bool sparse = entry.scores_with_gradient > 0;
    const double flops_rate = products.plain_flops() / plain_ms * 1e3;
    const double bytes_rate = cpu_copy_rate(context.threads(), matrix_bytes(false));
    out.floor_ms =
        (products.useful_flops() / flops_rate + products.sparse_bytes() / bytes_rate) * 1e3;
    out.floor_of =
        fmt::format("{:.3g} useful FLOP at {:.0f} G/s", products.useful_flops(), flops_rate * 1e-9);
    const double rate = row_sigmoid_rate(context.threads());
    const double scalar_rate = scalar_sigmoid_rate(context.threads());
    const double count = sigmoids(entry);
    if (count > 0) {
      out.floor_ms += count / rate * 1e3;
      out.floor_of += fmt::format(" + {:.3g} sigmoids at {:.2f} G/s", count, rate * 1e-9);
    } else {
      out.floor_ms += matrix_bytes(!sparse) / bytes_rate * 1e3;
      out.floor_of += fmt::format(" + the matrix {} at {:.1f} GB/s",
                                  sparse ? "read" : "read and written", bytes_rate * 1e-9);
    }
    out.more.update({{"gemm_flops_per_second", flops_rate},
                     {"sigmoids_per_second", rate},
                     {"scalar_sigmoids_per_second", scalar_rate}});
  }

  void report(const CommonOptions& common, const Context& context, const LossSpec& spec,
              const Measured& measured) const {
    const Timing& total = measured.total;
    nlohmann::json json = {{"loss_name", spec.text()}, {"n", n_},
                           {"memory", memory_},        {"dim", dim_},
                           {"per_class", per_class_},  {"repeats", repeats_}};
    put(json, "total_ms", total);
    put(json, "gemm_ms", measured.products);
    put(json, "rows_ms", measured.rows);
    json["floor_ms"] = measured.floor_ms;
    const double share = measured.floor_ms / total.median;
    // Of a gradient that is mostly zeros the CPU skips products, all of which the floor counts.
    const bool skips = !context.on_gpu() && share > 1;
    json["share"] = skips ? nlohmann::json(nullptr) : nlohmann::json(share);
    json["peak_bytes"] = measured.bytes;
    json.update(measured.more);
    const std::string where =
        common.device == "cpu" ? counted(context.threads(), "thread") : common.device;
    print(
        "{}  n {} + {}, dim {}, {} a class, {}\n"
        "total {:.3f} ms ({:.3f} to {:.3f})  products {:.3f} ms  floor {:.3f} ms ({})  share "
        "{}  {:.1f} MiB\n",
        spec.text(), n_, memory_, dim_, per_class_, where, total.median, total.least, total.most,
        measured.products.median, measured.floor_ms, measured.floor_of,
        skips ? "- (products with zeros are skipped)" : fmt::format("{:.0f} %", 100 * share),
        static_cast<double>(measured.bytes) / (1 << 20));
    write_result(common, context.threads(), std::move(json));
  }

  std::string loss_;
  std::int64_t n_ = 384;
  std::int64_t memory_ = 0;
  std::int64_t dim_ = 512;
  std::int64_t per_class_ = 4;
  int repeats_ = 7;
};

}  // namespace

std::unique_ptr<Command> make_bench_loss() { return std::make_unique<BenchLoss>(); }

}  // namespace rk
