#include "tools/probe/probe_loss.h"

#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/base/printable.h"
#include "engine/system/signals.h"
#include "retrieval/files/array_file.h"
#include "tools/cli/json_file.h"
#include "tools/cli/messages.h"
#include "tools/cli/output_files.h"
#include "tools/common/loss_notes.h"
#include "tools/common/normalized_loss.h"
#include "tools/common/row_lengths.h"
#include "weights/atomic_file.h"
#include "weights/hdf5/file.h"
#include "weights/written_by.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace rk {
namespace {

constexpr int kDirections = 16;
// Small compared with every loss's temperature, large enough that double's rounding stays below
// 1e-8.
constexpr double kStep = 1e-6;

double norm(const std::vector<float>& values) {
  double square = 0;
  for (const float v : values) square += static_cast<double>(v) * v;
  return std::sqrt(square);
}

class ProbeLoss final : public Command {
 public:
  void add_options(Flags& flags) override {
    flags.add("--loss", loss_, "NAME[:key=value,...]; with --help: what its parameters are");
    flags
        .add("--in", in_,
             "HDF5, .npz or safetensors file with embeddings [N, D] and labels [N], or .npy with "
             "embeddings; FILE:NAME takes the array NAME as embeddings or scores; --loss NAME "
             "--help says "
             "what else a loss reads, and of which shape")
        .type_name("FILE");
    flags
        .add("--labels", labels_,
             "labels of the embeddings, one a row, from another file: .npy, .npz, safetensors, "
             "HDF5 or CSV; numbers or names; FILE:NAME takes the array or column NAME")
        .type_name("FILE");
    flags
        .add(
            "--out", out_,
            "HDF5 file for /loss, /valid_queries, /grad and, of losses with proxies, /grad_proxies")
        .type_name("FILE");
    flags.add_switch("--normalize", normalize_,
                     "make rows of unit length first, inside the gradient");
    flags.add_switch("--check", check_, "compare with central differences, in double");
    flags.footer([flags] { return help(flags["--loss"].word()); });
  }

  bool runs_on_cuda() const override { return true; }

  void run(const CommonOptions& common) override {
    if (!loss_.empty() && in_.empty()) fail<UsageError>("--loss {}: --in is missing", loss_);
    if (loss_.empty() && !in_.empty()) fail<UsageError>("--in {}: --loss is missing", in_);
    if (loss_.empty()) {
      fail<UsageError>(
          "give --loss NAME --in FILE for a loss, --image FILE for what the network sees of a "
          "picture, or --data SPEC for what is in a data set; see --help");
    }
    check_outputs({{"--out", out_, FileKind::kLoss}, {"--json", common.json, FileKind::kJson}},
                  files(), common.force);
    const LossSpec spec = parse_loss(loss_);
    for (const std::string& line : loss_notes(spec, loss_)) note(line);
    const LossKind kind = spec.entry->kind;
    if (kind == LossKind::kScores && !labels_.empty()) {
      fail<UsageError>("--labels {}: {} reads scores and targets, no labels; leave it out", labels_,
                       spec.entry->name);
    }
    if (kind == LossKind::kScores && normalize_) {
      fail<UsageError>("--normalize: {} reads scores and targets, no embeddings; leave it out",
                       spec.entry->name);
    }
    const LossData<float> data = read_loss_file<float>(in_, kind, labels_);
    if (!data.text.empty()) print("{}: {}\n", one_line(in_), one_line(data.text));
    if (!normalize_ && kind != LossKind::kScores) {
      note_lengths(data.embeddings, data.dim, in_,
                   "the loss takes them for rows of length 1; --normalize makes them so first");
    }
    const Context context(common.threads, device_of(common));
    nlohmann::json json = {{"loss_name", spec.text()}};
    try {
      LossFunction<float> function(context, spec, data.shape(), normalize_);
      stop_if_interrupted();
      const LossResult<float> result = function(data);
      stop_if_interrupted();
      json["loss"] = result.loss;
      json["valid_queries"] = result.valid_queries;
      json["memory_rows"] = data.memory;
      json["grad_norm"] = norm(result.grad);
      // Of scores, each class's ranking or the one of all classes is a query.
      print("{}\nloss           {:.9g}\nvalid queries  {}{}\ngradient norm  {:.6g}\n", spec.text(),
            result.loss, result.valid_queries,
            kind == LossKind::kScores ? " (rankings with a positive)"
                                      : fmt::format(" of {}", data.rows),
            norm(result.grad));
      if (result.valid_queries == 0 && result.loss == 0 && kind != LossKind::kScores) {
        note(fmt::format(
            "{}: no row has both another of its class and one of another class, so that the loss "
            "is 0",
            in_));
      }
      if (data.memory > 0) print("memory         {} rows to rank against\n", data.memory);
      if (kind == LossKind::kProxies) {
        json["grad_proxies_norm"] = norm(result.grad_proxies);
        print("of the proxies {:.6g}\n", norm(result.grad_proxies));
      }
      if (check_) json["check"] = check(context, spec, common);
      if (!out_.empty()) {
        write(data, kind, result);
        print("{}: the loss and its gradient\n", one_line(out_));
      }
    } catch (const InputError& error) {
      // Errors about rows refer to this file, so prefix them with its name.
      const std::string text = error.what();
      const bool named = text.starts_with(in_) || (!out_.empty() && text.starts_with(out_));
      if (named) throw;
      fail<InputError>("{}: {}", in_, text);
    }
    write_result(common, context.threads(), std::move(json));
  }

 private:
  // What is read, without the names of arrays.
  std::vector<std::string> files() const {
    std::vector<std::string> out = {file_and_name(in_).file};
    if (!labels_.empty()) out.push_back(file_and_name(labels_).file);
    return out;
  }

  static std::string help(const std::string& loss) {
    if (!loss.empty()) return "\n" + describe_loss(*parse_loss(loss).entry);
    std::string text = "\nLosses (probe --loss NAME --help says more):\n";
    for (const LossEntry& entry : loss_registry()) {
      text += fmt::format("  {:<18} {}\n", entry.name, entry.summary);
    }
    return text;
  }

  nlohmann::json check(const Context& context, const LossSpec& spec, const CommonOptions& common) {
    stop_if_interrupted();
    if (!spec.entry->differentiable) {
      print("check          {}'s gradient is no derivative of its value: no differences\n",
            spec.entry->name);
      return nullptr;
    }
    const LossData<double> data = read_loss_file<double>(in_, spec.entry->kind, labels_);
    const Context cpu(context.threads());
    LossFunction<double> function(cpu, spec, data.shape(), normalize_);
    const DifferenceCheck found =
        check_differences(function, data, common.seed, kDirections, kStep);
    print(
        "check          {} random directions, step {:g}, in double: worst relative deviation "
        "{:.1e}, median {:.1e}\n",
        found.directions, found.step, found.worst, found.median);
    // The gradient of fastap's authors is no derivative.
    if (const auto compat = spec.values.text().find("compat");
        compat != spec.values.text().end() && compat->second == "official") {
      const auto parameter =
          std::ranges::find(spec.entry->parameters, "compat", &LossParameter::name);
      print("               compat={}\n", parameter->meaning);
    }
    if (found.equal_rows > 0) {
      print(
          "               {} equal to another: where the loss has a kink between them, what "
          "deviates "
          "is the difference, not the gradient\n",
          found.equal_rows == 1 ? "1 row is" : fmt::format("{} rows are", found.equal_rows));
    }
    return {{"equal_rows", found.equal_rows},
            {"directions", found.directions},
            {"step", found.step},
            {"worst", found.worst},
            {"median", found.median}};
  }

  void write(const LossData<float>& data, LossKind kind, const LossResult<float>& result) {
    Hdf5Writer file;
    sign(file);
    file.write<double>("/loss", {}, &result.loss);
    file.write<std::int64_t>("/valid_queries", {}, &result.valid_queries);
    const std::int64_t width = kind == LossKind::kScores ? data.classes : data.dim;
    file.write<float>("/grad", {data.rows, width}, result.grad.data());
    if (kind == LossKind::kProxies) {
      file.write<float>("/grad_proxies", {data.classes, data.dim}, result.grad_proxies.data());
    }
    write_atomic(out_, file.finish());
  }

  std::string loss_;
  std::string in_;
  std::string labels_;
  std::string out_;
  bool normalize_ = false;
  bool check_ = false;
};

}  // namespace

std::unique_ptr<Command> make_probe_loss() { return std::make_unique<ProbeLoss>(); }

}  // namespace rk
