#include "tools/convert/convert_command.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/base/printable.h"
#include "engine/system/read_file.h"
#include "engine/system/signals.h"
#include "tools/cli/flags/colour_values.h"
#include "tools/cli/flags/program_names.h"
#include "tools/cli/json_file.h"
#include "tools/cli/messages.h"
#include "tools/cli/output_files.h"
#include "tools/cli/progress.h"
#include "tools/convert/tensor_table.h"
#include "weights/architectures/registry.h"
#include "weights/atomic_file.h"
#include "weights/foreign/model_text.h"
#include "weights/foreign/python_names.h"
#include "weights/foreign/torch_loader.h"
#include "weights/foreign/weight_files.h"
#include "weights/onnx/file.h"
#include "weights/run_folder.h"
#include "weights/sealed_file.h"
#include "weights/tensor_files/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <optional>
#include <utility>
#include <vector>

namespace rk {
namespace {

namespace fs = std::filesystem;

// A format of OUT: how it is written, and how it is checked after writing.
struct Format {
  const char* name;    // --to
  const char* ending;  // of OUT; chooses the format without --to
  const char* words;
  std::vector<std::byte> (*bytes)(const NetworkWeights&);
  void (*check)(std::span<const std::byte>, const NetworkWeights&, const std::string&);
};

constexpr std::array<Format, 3> kFormats = {{
    {"safetensors", ".safetensors", "safetensors", safetensors_bytes, check_safetensors},
    {"onnx", ".onnx", "an ONNX graph",
     [](const NetworkWeights& weights) { return onnx_bytes(weights); }, check_onnx},
    {"h5", ".h5", "Rankine weights", checkpoint_bytes, check_checkpoint},
}};

// A kind of IN that --from can insist on.
struct Source {
  const char* name;
  TensorFile::Kind kind;
};

constexpr std::array<Source, 4> kSources = {{
    {"pth", TensorFile::Kind::kTorch},
    {"safetensors", TensorFile::Kind::kSafetensors},
    {"keras", TensorFile::Kind::kKeras},
    {"h5", TensorFile::Kind::kRankine},
}};

template <class Table> std::vector<std::string> names_of(const Table& table) {
  std::vector<std::string> names;
  for (const auto& entry : table) names.emplace_back(entry.name);
  return names;
}

constexpr std::size_t kPieceBytes = std::size_t{8} << 20;

// Writes in pieces, shows progress, and stops if a signal asks to.
class CountedCalls final : public FileCalls {
 public:
  explicit CountedCalls(Progress& progress) : progress_(progress) {}
  ssize_t write(int descriptor, const void* data, std::size_t bytes) override {
    stop_if_interrupted();
    const ssize_t written = FileCalls::write(descriptor, data, std::min(bytes, kPieceBytes));
    if (written > 0) progress_.update((done_ += written) >> 20);
    return written;
  }

 private:
  Progress& progress_;
  std::int64_t done_ = 0;
};

// torchvision's files have the first digits of their SHA-256 in their names.
std::string digest_note(const std::string& path, const std::string& sha256) {
  const std::string stem = fs::path(path).stem().string();
  const std::size_t dash = stem.rfind('-');
  if (dash == std::string::npos) return "";
  const std::string digits = stem.substr(dash + 1);
  if (digits.size() != 8 || digits.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return "";
  }
  if (sha256.starts_with(digits)) {
    return fmt::format("the SHA-256 begins with {}, as its name says", digits);
  }
  // More probably a date: of eight digits of a sum, one in 43 lacks letters.
  if (digits.find_first_of("abcdef") == std::string::npos) return "";
  return fmt::format(
      "the SHA-256 does not begin with {}, as its name says: the file is not the one that was "
      "published under it",
      digits);
}

class Convert final : public Command {
 public:
  const char* quiet_help() const override { return "print nothing but --list and --dry-run"; }
  const char* verbose_help() const override { return "also name every tensor that is left out"; }
  void add_options(Flags& flags) override {
    flags.add("in", in_, "the file to read").type_name("IN");
    flags.add("out", out_, "the file to write").check(file_name()).type_name("OUT");
    flags
        .add("--from-run", from_run_,
             "the folder of a run, in IN's place: its best.h5 becomes OUT, a .safetensors with, "
             "beside it, a .py that loads it with torchvision and embeds pictures, or an .onnx")
        .type_name("RUN");
    std::vector<std::string> sources = names_of(kSources);
    sources.insert(sources.begin(), "auto");
    flags
        .add("--from", from_,
             fmt::format("what IN must be, auto (any) or one of {}",
                         fmt::join(names_of(kSources), ", ")))
        .check(one_of(sources));
    flags
        .add("--to", to_,
             "h5 (Rankine's), safetensors, or onnx (a graph that onnxruntime and TensorRT "
             "run); empty: as OUT's name ends")
        .check(one_of(names_of(kFormats)));
    flags
        .add("--arch", arch_,
             fmt::format("{}; empty: as the shapes say", fmt::join(network_names(), ", ")))
        .check(one_of(network_names()));
    flags
        .add("--like", like_,
             "Rankine's weights or safetensors, in whose way IN pools, strides and wants its "
             "images: for a state_dict of what a loader of --from-run made, which cannot say so")
        .type_name("FILE");
    mean_option_ = flags
                       .add("--input-mean", input_mean_,
                            "what is subtracted from pixels in 0..1 of IN's images: one number, or "
                            "red,green,blue")
                       .check({in_range(-kMostInput, kMostInput).problem})
                       .delimiter(',')
                       .default_text("as IN says");
    std_option_ = flags.add("--input-std", input_std_, "what they are divided by after that")
                      .check({in_range(kLeastInputStd, kMostInput).problem})
                      .delimiter(',')
                      .default_text("as IN says");
    flags
        .add(
            "--fc", fc_,
            "what the layer fc on the features of IN's network is; embedding: makes the embedding, "
            "where a training program put it in the classifier's place")
        .check(one_of({"classifier", "embedding"}));
    flags.add_switch("--list", list_, "print a table of the tensors in IN and write nothing");
    flags.add_switch("--dry-run", dry_run_, "say what would be done and write nothing");
    flags.add_switch("--no-crc", no_crc_, "take a zip archive whose checksums differ");
  }

  void run(const CommonOptions& common) override {
    silent_ = common.quiet && !dry_run_;
    give_each_colour("--input-mean", input_mean_);
    give_each_colour("--input-std", input_std_);
    std::string loader;
    if (!from_run_.empty()) loader = take_run();
    if (in_.empty()) fail<UsageError>("IN is missing: `convert IN OUT`, or --from-run RUN OUT");
    if (out_.empty() && !list_ && !dry_run_) {
      fail<UsageError>("OUT is missing: `convert IN OUT`, or --list, or --dry-run");
    }
    check_outputs(
        {{"OUT", list_ ? "" : out_, FileKind::kWeights, to_.empty() ? "" : format().ending},
         {"OUT", list_ ? "" : loader, FileKind::kPython},
         {"--json", common.json, FileKind::kJson}},
        {in_, like_}, common.force);
    const TensorFile file = read(common);
    const std::size_t tensors = weights_ ? weights_->tensors.size() : file.tensors.size();
    say("{}: {}, {}, {:.1f} MiB\n  SHA-256 {}\n", one_line(in_), file.format,
        counted(tensors, "tensor"), static_cast<double>(file.bytes) / (1 << 20), file.sha256);
    if (const std::string line = digest_note(in_, file.sha256); !line.empty()) {
      say("  {}\n", line);
    }
    for (const std::string& line : file.notes) say("  {}\n", line);
    nlohmann::json json = {
        {"in", in_}, {"format", file.format}, {"sha256", file.sha256}, {"tensors", tensors}};
    if (list_) {
      print_tensor_table(weights_ ? stored_tensors(*weights_) : file.tensors);
    } else {
      convert(file, common, json);
    }
    if (!dry_run_ && !list_ && !loader.empty()) write_loader(loader, json);
    write_result(common, 1, std::move(json));
  }

 private:
  template <class... Args> void say(fmt::format_string<Args...> format, Args&&... args) const {
    if (!silent_) rk::print(format, std::forward<Args>(args)...);
  }

  // For a Rankine file sets `weights_`; for any other file returns its tensors.
  TensorFile read(const CommonOptions& common) {
    refuse_run();
    TensorFile file;
    if (is_sealed(in_)) {
      const Checkpoint ours(in_);
      weights_ = network_weights(ours);
      if (!arch_.empty() && arch_ != weights_->model.arch) {
        fail<UsageError>("--arch {}: {} holds {}; leave --arch out", arch_, in_,
                         with_article(weights_->model.arch));
      }
      of_run_ = ours.has_run();
      file.kind = TensorFile::Kind::kRankine;
      file.format = ours.has_run() ? "checkpoint of a Rankine run" : "Rankine weights";
      file.sha256 = ours.sha256();
      file.bytes = fs::file_size(in_);
    } else {
      file = read_tensors(read_pieces(common), in_, {.check_crc = !no_crc_});
    }
    stop_if_interrupted();
    for (const Source& source : kSources) {
      if (from_ != source.name || file.kind == source.kind) continue;
      fail<InputError>("{}: is {}, not what --from {} says; leave --from out", in_, file.format,
                       from_);
    }
    return file;
  }

  std::vector<std::byte> read_pieces(const CommonOptions& common) const {
    const RegularFile file(in_, kMaxTensorFileBytes);
    std::vector<std::byte> bytes(file.bytes());
    Progress progress("reading", static_cast<std::int64_t>(bytes.size() >> 20), "MiB",
                      common.quiet);
    for (std::size_t at = 0; at < bytes.size(); at += kPieceBytes) {
      const std::size_t piece = std::min(kPieceBytes, bytes.size() - at);
      stop_if_interrupted();
      file.read(at, std::span(bytes).subspan(at, piece));
      progress.update(static_cast<std::int64_t>((at + piece) >> 20));
    }
    return bytes;
  }

  // Refuses a folder as IN.
  void refuse_run() const {
    std::error_code ignored;
    if (fs::is_directory(in_, ignored) && fs::exists(fs::path(in_) / kBestFile, ignored)) {
      fail<InputError>("{0}: is the folder of a run; take its {1} by --from-run {0}", in_,
                       kBestFile);
    }
    require_checkpoint_file(in_);
  }

  // Sets IN and OUT for --from-run; returns the path of the Python file, empty for ONNX.
  std::string take_run() {
    if (!out_.empty())
      fail<UsageError>("--from-run {}: takes IN's place; give OUT alone", from_run_);
    out_ = in_;
    in_ = (fs::path(from_run_) / kBestFile).string();
    const std::string ending = output_ending(out_);
    const bool graph = ending == ".onnx";
    if (ending == ".h5" || to_ == "h5") {
      fail<UsageError>(
          "--from-run {}: {} is Rankine's file already; copy it, or convert to "
          ".safetensors or .onnx",
          from_run_, in_);
    }
    if (!list_ && !dry_run_ && !graph && ending != ".safetensors") {
      fail<UsageError>("--from-run {}: OUT must end in .safetensors or .onnx, got '{}'", from_run_,
                       out_);
    }
    check_run();
    if (graph || out_.empty()) return "";
    fs::path python = fs::path(out_).replace_extension(".py");
    const std::string module = python.stem().string();
    if (hides_python_module(module)) {
      fail<UsageError>(
          "OUT {}: {} beside it would hide Python's module {} from what it imports; give another "
          "name",
          out_, python.filename().string(), module);
    }
    if (!is_python_name(module)) {
      note(fmt::format(
          "{}: Python's `import` cannot name it; a word of letters, digits and _ would do",
          python.string()));
    }
    return python.string();
  }

  void check_run() const {
    const fs::path run(from_run_);
    std::error_code ignored;
    std::string problem;
    if (!fs::exists(run, ignored)) {
      problem = "no such folder";
    } else if (!fs::is_directory(run, ignored)) {
      problem = "is no folder";
    } else if (!fs::exists(in_, ignored)) {
      if (fs::exists(run / kLastFile, ignored)) {
        fail<InputError>(
            "{0}: holds no {1} yet; let the run go on (`train --out {0} --resume auto`, with "
            "--epochs if it is over), or convert its {2}",
            from_run_, kBestFile, kLastFile);
      }
      problem = fmt::format("holds no {}", kBestFile);
    }
    const std::string what = "give the folder that `train --out` wrote";
    if (!problem.empty()) fail<InputError>("{}: {}; {}", from_run_, problem, what);
    if (!is_sealed(in_)) {
      fail<InputError>("{}: is no checkpoint, or one that another program has written to; {}", in_,
                       what);
    }
  }

  void write_loader(const std::string& path, nlohmann::json& json) const {
    const std::string text = torch_loader(weights_->model, fs::path(out_).filename().string());
    write_atomic(path, text);
    json["loader"] = path;
    say("{}: loads it with torchvision\n", one_line(path));
  }

  void convert(const TensorFile& file, const CommonOptions& common, nlohmann::json& json) {
    if (!weights_) weights_ = network_weights(file, arch_);
    const bool described =
        file.kind == TensorFile::Kind::kRankine || file.metadata.contains(kModelKey);
    if (fc_ == "embedding") take_classifier_for_embedding(*weights_, in_, described);
    describe(weights_->model, described);
    const NetworkWeights& weights = *weights_;
    say("{}\n", weights.summary());
    std::vector<std::string> notes = weights.notes;
    const bool said_by_flags = !like_.empty() || mean_option_.given() || std_option_.given();
    if (!weights.unsaid.empty() && !said_by_flags) notes.push_back(weights.unsaid);
    for (const std::string& line : notes) say("  {}\n", line);
    note_classifier(weights);
    print_ignored(weights.ignored, common.verbose);
    say("  {}\nwants {}\n", head_text(weights.model), input_text(weights.model));
    json.update({{"arch", weights.model.arch},
                 {"names", weights.names},
                 {"mapped", weights.tensors.size()},
                 {"ignored", weights.ignored},
                 {"input", nlohmann::json::parse(model_text(weights.model))},
                 {"notes", notes}});
    const std::vector<std::string> problems = findings(weights);
    json["findings"] = problems;
    if (!problems.empty()) {
      for (const std::string& line : problems) say("  {}\n", line);
      // Rankine's own weights are checked wherever they are read.
      const bool never = !out_.empty() && format().bytes == checkpoint_bytes;
      if (never || !common.force) {
        refuse_findings(in_, problems,
                        never ? "take another file, or write safetensors with --force"
                              : "take another file, or --force");
      }
    }
    if (dry_run_) {
      say("nothing was written{} (--dry-run)\n",
          out_.empty() ? "" : fmt::format(" to {}, as {}", one_line(out_), format().words));
      return;
    }
    write(weights, common, json);
  }

  // ImageNet's classes, also with one for the background, are classes.
  void note_classifier(const NetworkWeights& weights) const {
    const NetworkWeights::Tensor* classifier = weights.find("fc.weight");
    if (classifier == nullptr || weights.model.dim > 0) return;
    const std::int64_t classes = classifier->dims[0];
    if (classes == 1000 || classes == 1001) return;
    say("  if they are no classes but the embedding, give --fc embedding\n");
  }

  // What a checkpoint, or safetensors that `convert` wrote, say of their network.
  static ModelDescription described_by(const std::string& path) {
    if (is_sealed(path)) return Checkpoint(path).model();
    const TensorFile file = read_tensor_file(path);
    if (file.metadata.contains(kModelKey)) return network_weights(file, "").model;
    fail<InputError>(
        "{}: does not say how its network pools, strides and wants its images; give a run's "
        "best.h5, or what `convert` made of it",
        path);
  }

  // Applies --like and the flags for means and deviations; says what of a file that `describes
  // itself` they replace.
  void describe(ModelDescription& model, bool describes_itself) const {
    if (!like_.empty()) {
      const ModelDescription like = described_by(like_);
      if (like.arch != model.arch) {
        fail<UsageError>("--like {}: holds {}, {} is {}; give a file of the same network", like_,
                         with_article(like.arch), in_, with_article(model.arch));
      }
      const ModelDescription own = std::exchange(model, like);
      model.dim = own.dim;
      model.source_sha256 = own.source_sha256;
      const std::string replaced = replaced_text(own, model);
      if (describes_itself && !replaced.empty()) {
        note(fmt::format("--like {}: replaces what {} says of itself: {}; without --like it stays",
                         like_, in_, replaced));
      }
    }
    if (mean_option_.given()) {
      std::ranges::copy(input_mean_, model.input_mean.begin());
      note_mean_of_levels(std::ranges::max(input_mean_));
    }
    if (std_option_.given()) std::ranges::copy(input_std_, model.input_std.begin());
  }

  void print_ignored(const std::vector<std::string>& names, bool all) const {
    constexpr std::size_t kMost = 10;
    for (std::size_t i = 0; i < names.size() && (all || i < kMost); ++i) {
      say("  left out: {}\n", one_line(names[i]));
    }
    if (!all && names.size() > kMost) say("  ... (-v names all)\n");
  }

  // Rankine's own format unless --to or OUT's extension names another.
  const Format& format() const {
    const std::string ending = output_ending(out_);
    const auto found = std::find_if(kFormats.begin(), kFormats.end(), [&](const Format& f) {
      return to_.empty() ? ending == f.ending : to_ == f.name;
    });
    return found == kFormats.end() ? kFormats.back() : *found;
  }

  // Checks that the file reads back as the same weights before it replaces OUT; the check runs
  // while the bytes are written to the disk.
  void write(const NetworkWeights& weights, const CommonOptions& common, nlohmann::json& json) {
    const Format& to = format();
    const std::vector<std::byte> bytes = to.bytes(weights);
    Progress progress("writing", static_cast<std::int64_t>(bytes.size() >> 20), "MiB",
                      common.quiet);
    std::string digest;
    // Beside the writing if there is a thread for it, else after it.
    auto checked = std::async(std::launch::async | std::launch::deferred, [&] {
      to.check(bytes, weights, out_);
      digest = hexadecimal(sha256(bytes));
    });
    CountedCalls calls(progress);
    const auto accept = [&] {
      checked.get();
      stop_if_interrupted();
    };
    write_atomic_checked(out_, bytes, accept, calls);
    progress.finish();
    json.update({{"out", out_}, {"out_sha256", digest}, {"out_bytes", bytes.size()}});
    say("{}: {}, {:.1f} MiB, read again and equal\n  SHA-256 {}\n", one_line(out_), to.words,
        static_cast<double>(bytes.size()) / (1 << 20), digest);
    if (of_run_ && from_run_.empty() && to.bytes == safetensors_bytes && weights.model.dim > 0) {
      say("{}", ProgramNames(common.program)
                    .in_advice("  torchvision has no embedding layer; `convert --from-run RUN "
                               "OUT.safetensors` also writes a .py that has one\n"));
    }
    if (from_run_.empty() && to.bytes == safetensors_bytes && weights.model.stride_in_1x1) {
      note(fmt::format(
          "{}: torchvision's network takes these weights without a word, but has its strides in "
          "the 3x3 of a block: other features; docs/weights.md tells what to set there",
          out_));
    }
  }

  std::string in_, out_, from_run_, from_ = "auto", to_, arch_, like_, fc_ = "classifier";
  std::vector<double> input_mean_ = {0.5}, input_std_ = {0.5};
  Flag mean_option_, std_option_;
  bool list_ = false, dry_run_ = false, no_crc_ = false, silent_ = false;
  bool of_run_ = false;  // IN is a run's checkpoint
  std::optional<NetworkWeights> weights_;
};

}  // namespace

std::unique_ptr<Command> make_convert() { return std::make_unique<Convert>(); }

}  // namespace rk
