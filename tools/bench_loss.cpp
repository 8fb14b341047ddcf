#include "tools/bench_loss.h"

#include "engine/device.h"
#include "engine/error.h"
#include "engine/parallel.h"
#include "engine/random.h"
#include "kernels/flush_denormals.h"
#include "kernels/math.h"
#include "losses/matrix_product.h"
#include "tools/bench_loss_device.h"
#include "tools/json_file.h"
#include "tools/loss_file.h"
#include "tools/messages.h"
#include "tools/signals.h"
#include "tools/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace rk {
namespace {

// Classes of `per_class` unit vectors around random centres, some far from theirs.
LossData<float> make_data(const LossEntry& entry, std::int64_t n, std::int64_t memory,
                          std::int64_t dim, std::int64_t per_class, std::uint64_t seed) {
  LossData<float> data;
  data.rows = n;
  data.dim = dim;
  data.memory = memory;
  data.classes = (n + memory + per_class - 1) / per_class;
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

// The products of a loss alone: similarities, and the gradient from a matrix of that shape.
class Products {
 public:
  Products(const LossData<float>& data, bool proxies)
      : data_(data),
        others_(proxies ? data.proxies : data.memory_embeddings),
        square_(proxies ? 0 : data.rows),
        other_columns_(proxies ? data.classes : data.memory),
        proxies_(proxies),
        matrix_(static_cast<std::size_t>(data.rows * (square_ + other_columns_)), 0.0F),
        grad_(static_cast<std::size_t>(data.rows * data.dim)),
        grad_proxies_(proxies ? data.proxies.size() : 0) {}

  void run(const Context& context) {
    const std::int64_t n = data_.rows;
    const std::int64_t d = data_.dim;
    const std::int64_t stride = square_ + other_columns_;
    const float* e = data_.embeddings.data();
    if (square_ > 0) {
      product_abt(context, n, n, d, e, d, e, d, matrix_.data(), stride);
      product_ab(context, n, d, n, matrix_.data(), stride, e, d, 0.0F, grad_.data(), d);
    }
    if (other_columns_ > 0) {
      float* part = matrix_.data() + square_;
      product_abt(context, n, other_columns_, d, e, d, others_.data(), d, part, stride);
      product_ab(context, n, d, other_columns_, part, stride, others_.data(), d, 1.0F, grad_.data(),
                 d);
      if (proxies_) {
        product_atb(context, other_columns_, d, n, part, stride, e, d, 0.0F, grad_proxies_.data(),
                    d);
      }
    }
  }

 private:
  const LossData<float>& data_;
  const std::vector<float>& others_;
  std::int64_t square_;
  std::int64_t other_columns_;
  bool proxies_;
  std::vector<float> matrix_;
  std::vector<float> grad_;
  std::vector<float> grad_proxies_;
};

// The row kernels' sigmoid, and one element after the other by the C library: the ratio of their
// rates tells whether the loops of row kernels are vectorised.
float row_sigmoid(float x) {
  const float u = half_sigmoid(x);
  return x < 0 ? u : 1 - u;
}
[[gnu::noinline]] float scalar_sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

// Sigmoids a second of all threads together, over data that stays in the first cache.
template <class F> double sigmoid_rate(int threads, F&& sigmoid) {
  constexpr int kCount = 2048;
  constexpr int kRepeats = 200;
  std::vector<float> values(static_cast<std::size_t>(threads * kCount));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i % 61) - 30.0F;
  }
  std::vector<float> sums(static_cast<std::size_t>(threads));
  std::vector<double> times(7);
  for (double& time : times) {
    time = milliseconds([&] {
      parallel_for(threads, threads, [&](std::int64_t part, int) {
        const SerialTeam team;
        float* mine = values.data() + part * kCount;
        float total = 0;
        for (int r = 0; r < kRepeats; ++r) {
          const float shift = static_cast<float>(r);
          total += team.sum(kCount, [&](int i) { return sigmoid(mine[i] - shift); });
        }
        sums[static_cast<std::size_t>(part)] = total;
      });
    });
  }
  return threads * static_cast<double>(kCount) * kRepeats / summarize(times).median * 1e3;
}

// Bytes a second of all threads together, read and written, over arrays beyond the caches.
double copy_rate(int threads) {
  constexpr std::int64_t kBytes = std::int64_t{64} << 20;
  const Buffer from(kBytes);
  const Buffer to(kBytes);
  std::memset(from.data(), 1, kBytes);
  std::vector<double> times(5);
  for (double& time : times) {
    time = milliseconds([&] {
      parallel_ranges(threads, kBytes, [&](std::int64_t begin, std::int64_t end, int) {
        std::memcpy(to.as<char>() + begin, from.as<char>() + begin,
                    static_cast<std::size_t>(end - begin));
      });
    });
  }
  return 2.0 * kBytes / summarize(times).median * 1e3;
}

class BenchLoss final : public Command {
 public:
  void add_options(CLI::App& app) override {
    app.add_option("--loss", loss_, "NAME[:key=value,...]")->required();
    app.add_option("--n", n_, "batch size")->check(CLI::Range(2, 1 << 20));
    app.add_option("--memory", memory_, "columns of memory")->check(CLI::Range(0, 1 << 24));
    app.add_option("--dim", dim_, "dimensions")->check(CLI::Range(1, 1 << 16));
    app.add_option("--per-class", per_class_, "items a class")->check(CLI::Range(1, 1 << 20));
    app.add_option("--repeats", repeats_, "timed runs")->check(CLI::Range(1, 10000));
  }

  bool runs_on_cuda() const override { return parse_loss(loss_).entry->make_device != nullptr; }

  void run(const CommonOptions& common) override {
    const LossSpec spec = parse_loss(loss_);
    if (spec.entry->kind == LossKind::kScores) {
      fail<UsageError>("bench loss: {} ranks scores; use bench rank", spec.entry->name);
    }
    const LossData<float> data = make_data(*spec.entry, n_, memory_, dim_, per_class_, common.seed);
    const Device device = device_of(common);
    const Context context(common.threads);
    const Measured measured =
        device.cuda ? on_cuda(device.index, spec, data) : on_cpu(context, spec, data);
    report(common, context, spec, measured);
  }

 private:
  struct Measured {
    Timing total, products, rows;
    double floor_ms = 0;
    std::string floor_of;
    std::int64_t bytes = 0;
    nlohmann::json more;
  };

  // Exponentials of the rows of a whole batch; 0: the matrix read and written is what counts.
  double sigmoids(const LossEntry& entry) const {
    const double columns = static_cast<double>(n_ + memory_);
    const double positives = std::min<double>(static_cast<double>(per_class_), columns) - 1;
    return entry.sigmoids != nullptr ? entry.sigmoids(columns, positives) * static_cast<double>(n_)
                                     : 0;
  }
  double matrix_bytes() const {
    return 2 * sizeof(float) * static_cast<double>(n_) * static_cast<double>(n_ + memory_);
  }

  // The GPU's floor beside the products: the matrix at the rate of a copy, or sigmoids at two
  // evaluations of special functions each (2e12 a second on an H200), and what the launches cost.
  Measured on_cuda(int device, const LossSpec& spec, const LossData<float>& data) const {
    constexpr double kSigmoidsPerSecond = 2e12;
    constexpr double kLaunchMs = 5e-3;
    const DeviceLossTimes times = time_device_loss(device, spec, data, repeats_);
    Measured out{times.total, times.products, times.rows, 0, "", times.bytes, {}};
    const double count = sigmoids(*spec.entry);
    const double matrix_ms = matrix_bytes() / times.copy_rate * 1e3;
    const double sigmoid_ms = count / kSigmoidsPerSecond * 1e3;
    out.floor_ms =
        times.products.median + std::max(matrix_ms, sigmoid_ms) + times.kernels * kLaunchMs;
    out.floor_of = fmt::format(
        "GEMMs + {} + {} launches",
        matrix_ms > sigmoid_ms
            ? fmt::format("the matrix read and written at {:.0f} GB/s", times.copy_rate * 1e-9)
            : fmt::format("{:.3g} sigmoids at 2 T/s", count),
        times.kernels);
    out.more = {{"sigmoids", count},
                {"copy_bytes_per_second", times.copy_rate},
                {"kernels", times.kernels},
                {"device_name", times.device_name}};
    return out;
  }

  Measured on_cpu(const Context& context, const LossSpec& spec, const LossData<float>& data) const {
    const auto loss = make_loss<float>(spec);
    loss->plan(context, data.shape());
    std::vector<float> grad(data.embeddings.size());
    std::vector<float> grad_proxies(data.proxies.size());
    LossOutput<float> output;
    output.grad = grad.data();
    output.grad_proxies = grad_proxies.data();
    const LossInput<float> input = data.input();
    Products products(data, spec.entry->kind == LossKind::kProxies);

    loss->run(context, input, output);  // the first run wakes the threads and touches the memory
    products.run(context);
    std::vector<double> totals;
    std::vector<double> gemms;
    std::vector<double> rows;
    for (int repeat = 0; repeat < repeats_; ++repeat) {
      stop_if_interrupted();
      // Alternating, so that a busy machine slows both alike.
      totals.push_back(milliseconds([&] { loss->run(context, input, output); }));
      gemms.push_back(milliseconds([&] { products.run(context); }));
      rows.push_back(totals.back() - gemms.back());
    }
    const Timing total = summarize(totals);
    const Timing gemm = summarize(gemms);

    double floor = gemm.median;
    std::string floor_of;
    // Lambdas, which a loop takes in; a pointer to a function would stay a call.
    const double rate = sigmoid_rate(context.threads(), [](float x) { return row_sigmoid(x); });
    const double scalar_rate =
        sigmoid_rate(context.threads(), [](float x) { return scalar_sigmoid(x); });
    const double count = sigmoids(*spec.entry);
    if (count > 0) {
      floor += count / rate * 1e3;
      floor_of = fmt::format("GEMMs + {:.3g} sigmoids at {:.2f} G/s", count, rate * 1e-9);
    } else {
      const double bytes_rate = copy_rate(context.threads());
      floor += matrix_bytes() / bytes_rate * 1e3;
      floor_of =
          fmt::format("GEMMs + the matrix read and written at {:.1f} GB/s", bytes_rate * 1e-9);
    }

    const auto embedding_bytes = static_cast<std::int64_t>(sizeof(float) * data.embeddings.size());
    return {total,
            gemm,
            summarize(rows),
            floor,
            floor_of,
            loss->bytes() + 2 * embedding_bytes,
            {{"sigmoids", count},
             {"sigmoids_per_second", rate},
             {"scalar_sigmoids_per_second", scalar_rate}}};
  }

  void report(const CommonOptions& common, const Context& context, const LossSpec& spec,
              const Measured& measured) const {
    const Timing& total = measured.total;
    nlohmann::json json = {{"loss_name", spec.text()}, {"n", n_},
                           {"memory", memory_},        {"dim", dim_},
                           {"per_class", per_class_},  {"repeats", repeats_},
                           {"device", common.device},  {"threads", context.threads()},
                           {"version", RK_VERSION}};
    put(json, "total_ms", total);
    put(json, "gemm_ms", measured.products);
    put(json, "rows_ms", measured.rows);
    json["floor_ms"] = measured.floor_ms;
    json["share"] = measured.floor_ms / total.median;
    json["peak_bytes"] = measured.bytes;
    json.update(measured.more);
    const std::string where =
        common.device == "cpu" ? fmt::format("{} threads", context.threads()) : common.device;
    print(
        "{}  n {} + {}, dim {}, {} a class, {}\n"
        "total {:.3f} ms ({:.3f} to {:.3f})  GEMMs {:.3f} ms  floor {:.3f} ms ({})  share {:.0f} % "
        " {:.1f} MiB\n",
        spec.text(), n_, memory_, dim_, per_class_, where, total.median, total.least, total.most,
        measured.products.median, measured.floor_ms, measured.floor_of,
        100 * measured.floor_ms / total.median, static_cast<double>(measured.bytes) / (1 << 20));
    if (!common.json.empty()) write_json(common.json, json);
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
