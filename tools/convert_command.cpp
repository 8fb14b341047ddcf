#include "tools/convert_command.h"

#include "engine/error.h"
#include "layers/resnet.h"
#include "tools/json_file.h"
#include "tools/messages.h"
#include "tools/output_files.h"
#include "tools/progress.h"
#include "weights/atomic_file.h"
#include "weights/foreign/resnet_checkpoint.h"
#include "weights/foreign/safetensors.h"
#include "weights/foreign/torch_loader.h"
#include "weights/run_folder.h"
#include "weights/sealed_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

namespace rk {
namespace {

namespace fs = std::filesystem;

// Of the values that are numbers.
struct Range {
  double least = 0, largest = 0, mean = 0;
  std::int64_t not_finite = 0;
};

Range range_of(std::span<const float> values) {
  Range range;
  std::int64_t count = 0;
  for (const float value : values) {
    if (!std::isfinite(value)) {
      ++range.not_finite;
      continue;
    }
    const auto v = static_cast<double>(value);
    if (count == 0) range.least = range.largest = v;
    range.least = std::min(range.least, v);
    range.largest = std::max(range.largest, v);
    range.mean += v;
    ++count;
  }
  if (count > 0) range.mean /= static_cast<double>(count);
  return range;
}

std::vector<float> values_of(const StoredTensor& tensor) {
  if (is_real(tensor.type)) {
    std::vector<float> space;
    const std::span<const float> values = float_values(tensor, space);
    return {values.begin(), values.end()};
  }
  std::vector<float> values;
  for (const std::int64_t v : integer_values(tensor)) values.push_back(static_cast<float>(v));
  return values;
}

// name, type, shape, least, largest, mean: a line a tensor.
std::string table(const TensorFile& file) {
  std::size_t width = 4;
  for (const StoredTensor& tensor : file.tensors) {
    width = std::max(width, one_line(tensor.name).size());
  }
  std::string out = fmt::format("{:<{}}  {:<5} {:<20} {:>12} {:>12} {:>12}\n", "name", width,
                                "type", "shape", "min", "max", "mean");
  for (const StoredTensor& tensor : file.tensors) {
    out += fmt::format("{:<{}}  {:<5} {:<20}", one_line(tensor.name), width, name_of(tensor.type),
                       shape_text(tensor.dims));
    if ((is_real(tensor.type) || is_integer(tensor.type)) && tensor.elements() > 0) {
      const Range range = range_of(values_of(tensor));
      out += fmt::format(" {:>12.5g} {:>12.5g} {:>12.5g}", range.least, range.largest, range.mean);
      if (range.not_finite > 0) out += fmt::format("  {} NaN or infinite", range.not_finite);
    }
    out += '\n';
  }
  return out;
}

TensorFile tensors_of(const Checkpoint& checkpoint) {
  TensorFile file;
  file.path = checkpoint.path();
  file.format = checkpoint.has_run() ? "checkpoint of a Rankine run" : "Rankine weights";
  file.sha256 = checkpoint.sha256();
  for (ResNetWeights::Tensor& tensor : resnet_weights(checkpoint).tensors) {
    StoredTensor stored;
    stored.name = tensor.name;
    stored.dims = tensor.dims;
    if (tensor.dims.empty()) {
      const auto count = std::make_shared<const std::int64_t>(tensor.count);
      stored.type = ElementType::kI64;
      stored.bytes = std::as_bytes(std::span(count.get(), 1));
      stored.owner = count;
    } else {
      stored.bytes = std::as_bytes(tensor.values);
      stored.owner = tensor.owner;
    }
    file.tensors.push_back(std::move(stored));
  }
  return file;
}

// Files of torchvision's carry the first digits of their sum in their names.
std::string digest_note(const std::string& path, const std::string& sha256) {
  const std::string stem = fs::path(path).stem().string();
  const std::size_t dash = stem.rfind('-');
  if (dash == std::string::npos) return "";
  const std::string digits = stem.substr(dash + 1);
  if (digits.size() != 8 || digits.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return "";
  }
  return sha256.starts_with(digits)
             ? fmt::format("the SHA-256 begins with {}, as its name says", digits)
             : fmt::format(
                   "the SHA-256 does not begin with {}, as its name says: the file is not "
                   "the one that was published under it",
                   digits);
}

class Convert final : public Command {
 public:
  void add_options(CLI::App& app) override {
    app.add_option("in", in_, "the file to read")->type_name("IN");
    app.add_option("out", out_, "the file to write")->type_name("OUT");
    app.add_option(
           "--from-run", from_run_,
           "the folder of a run, in IN's place: its best.h5 becomes OUT (.safetensors) and, "
           "beside it, a .py that loads it with torchvision and embeds pictures")
        ->type_name("RUN");
    app.add_option("--from", from_, "what IN must be: auto (any), pth, safetensors, keras or h5")
        ->check(CLI::IsMember({"auto", "pth", "safetensors", "keras", "h5"}));
    app.add_option("--to", to_, "h5 or safetensors; empty: as OUT's name ends")
        ->check(CLI::IsMember({"h5", "safetensors"}));
    app.add_option("--arch", arch_, "resnet18 or resnet50; empty: as the shapes say")
        ->check(CLI::IsMember(network_names()));
    app.add_flag("--list", list_, "print a table of the tensors in IN and write nothing");
    app.add_flag("--dry-run", dry_run_, "say what would be done and write nothing");
    app.add_flag("--no-crc", no_crc_, "take a zip archive whose checksums differ");
  }

  void run(const CommonOptions& common) override {
    std::string loader;
    if (!from_run_.empty()) loader = take_run();
    if (in_.empty()) fail<UsageError>("IN is missing: convert IN OUT, or --from-run RUN OUT");
    if (out_.empty() && !list_ && !dry_run_) {
      fail<UsageError>("OUT is missing: convert IN OUT, or --list, or --dry-run");
    }
    if (to_.empty()) to_ = out_.ends_with(".safetensors") ? "safetensors" : "h5";
    const bool writes = !dry_run_ && !list_;
    check_outputs({{"OUT", writes ? out_ : "", FileKind::kWeights},
                   {"OUT", writes ? loader : "", FileKind::kPython},
                   {"--json", common.json, FileKind::kJson}},
                  {in_}, common.force);
    const TensorFile file = read();
    print("{}: {}, {} tensors, {:.1f} MiB\n  SHA-256 {}\n", one_line(in_), file.format,
          file.tensors.size(), static_cast<double>(file.bytes) / (1 << 20), file.sha256);
    for (const std::string& line : {digest_note(in_, file.sha256)}) {
      if (!line.empty()) print("  {}\n", line);
    }
    for (const std::string& line : file.notes) print("  {}\n", line);
    nlohmann::json json = {{"in", in_},
                           {"format", file.format},
                           {"sha256", file.sha256},
                           {"tensors", file.tensors.size()},
                           {"device", common.device},
                           {"version", RK_VERSION}};
    if (list_) {
      print("{}", table(file));
    } else {
      convert(file, common, json);
    }
    if (writes && !loader.empty()) write_loader(loader, json);
    if (!common.json.empty()) write_json(common.json, json);
  }

 private:
  TensorFile read() {
    TensorFile file;
    if (is_sealed(in_)) {
      checkpoint_ = std::make_unique<Checkpoint>(in_);
      file = tensors_of(*checkpoint_);
      file.bytes = fs::file_size(in_);
    } else {
      file = read_tensor_file(in_, {.check_crc = !no_crc_});
    }
    const char* wanted = from_ == "pth"           ? "PyTorch"
                         : from_ == "safetensors" ? "safetensors"
                         : from_ == "keras"       ? "Keras"
                                                  : "Rankine";
    if (from_ != "auto" && file.format.find(wanted) == std::string::npos) {
      fail<InputError>("{}: is a {}, not what --from {} says; leave --from out", in_, file.format,
                       from_);
    }
    return file;
  }

  // IN and OUT of a run; returns the name of the Python file.
  std::string take_run() {
    if (!out_.empty())
      fail<UsageError>("--from-run {}: takes IN's place; give OUT alone", from_run_);
    out_ = in_;
    in_ = (fs::path(from_run_) / kBestFile).string();
    if (!list_ && !dry_run_ && !out_.ends_with(".safetensors")) {
      fail<UsageError>("--from-run {}: OUT must end in .safetensors, got '{}'", from_run_, out_);
    }
    if (!is_sealed(in_)) {
      fail<InputError>("{}: is no checkpoint; give the folder that train --out wrote", in_);
    }
    return fs::path(out_).replace_extension(".py").string();
  }

  void write_loader(const std::string& path, nlohmann::json& json) const {
    const std::string text = torch_loader(checkpoint_->model(), fs::path(out_).stem().string());
    write_atomic(path, std::as_bytes(std::span(text)));
    json["loader"] = path;
    print("{}: loads it with torchvision\n", one_line(path));
  }

  void convert(const TensorFile& file, const CommonOptions& common, nlohmann::json& json) {
    const ResNetWeights weights =
        checkpoint_ ? resnet_weights(*checkpoint_) : resnet_weights(file, arch_);
    print("{}\n", weights.summary());
    for (const std::string& line : weights.notes) print("  {}\n", line);
    print_ignored(weights.ignored, common.verbose);
    print_input(weights.model);
    json.update({{"arch", weights.model.arch},
                 {"names", weights.names},
                 {"mapped", weights.tensors.size()},
                 {"ignored", weights.ignored},
                 {"notes", weights.notes}});
    const std::vector<std::string> problems = findings(weights);
    json["findings"] = problems;
    if (!problems.empty()) {
      for (const std::string& line : problems) print("  {}\n", line);
      if (!common.force) {
        fail<InputError>(
            "{}: {} tensors hold values that no training can begin with ({}{}); take "
            "another file, or --force",
            in_, problems.size(), problems[0], problems.size() > 1 ? ", ..." : "");
      }
    }
    if (dry_run_) {
      print("nothing was written (--dry-run)\n");
      return;
    }
    write(weights, common, json);
  }

  static void print_ignored(const std::vector<std::string>& names, bool all) {
    constexpr std::size_t kMost = 10;
    for (std::size_t i = 0; i < names.size() && (all || i < kMost); ++i) {
      print("  left out: {}\n", one_line(names[i]));
    }
    if (!all && names.size() > kMost) print("  ... (-v names all)\n");
  }

  static void print_input(const ModelDescription& model) {
    rk::print("wants {} pixels / {:g}, mean {:.4g}, std {:.4g}, resize {}, crop {}{}\n",
              model.channel_order, model.input_scale, fmt::join(model.input_mean, " "),
              fmt::join(model.input_std, " "), model.resize, model.crop,
              model.stride_in_1x1 ? "; strides in the first 1x1 of a block" : "");
  }

  void write(const ResNetWeights& weights, const CommonOptions& common, nlohmann::json& json) {
    Progress progress("writing", 2, "passes", common.quiet);
    const std::vector<std::byte> bytes =
        to_ == "safetensors" ? safetensors_bytes(weights) : checkpoint_bytes(weights);
    write_atomic(out_, bytes);
    progress.update(1);
    compare(weights);
    progress.finish();
    const std::string digest = hexadecimal(sha256(bytes));
    json.update({{"out", out_}, {"out_sha256", digest}, {"out_bytes", bytes.size()}});
    print("{}: {}, {:.1f} MiB, read again and equal\n  SHA-256 {}\n", one_line(out_),
          to_ == "safetensors" ? "safetensors" : "Rankine weights",
          static_cast<double>(bytes.size()) / (1 << 20), digest);
  }

  // What was written says what was meant.
  void compare(const ResNetWeights& weights) const {
    const ResNetWeights again = to_ == "safetensors"
                                    ? resnet_weights(read_tensor_file(out_), weights.model.arch)
                                    : resnet_weights(Checkpoint(out_));
    for (const ResNetWeights::Tensor& tensor : weights.tensors) {
      const ResNetWeights::Tensor* other = again.find(tensor.name);
      const bool equal =
          other != nullptr && other->dims == tensor.dims && other->count == tensor.count &&
          (tensor.values.empty() || std::memcmp(other->values.data(), tensor.values.data(),
                                                tensor.values.size_bytes()) == 0);
      if (!equal) {
        fail<InputError>("{}: {} was not written as it was read; try another disk", out_,
                         tensor.name);
      }
    }
  }

  std::string in_, out_, from_run_, from_ = "auto", to_, arch_;
  bool list_ = false, dry_run_ = false, no_crc_ = false;
  std::unique_ptr<Checkpoint> checkpoint_;
};

}  // namespace

std::unique_ptr<Command> make_convert() { return std::make_unique<Convert>(); }

}  // namespace rk
