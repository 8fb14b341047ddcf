#include "tools/cli/output_files.h"

#include "data/images/encode_png.h"
#include "engine/base/error.h"
#include "engine/base/lower_case.h"
#include "retrieval/report/page.h"
#include "tools/cli/json_file.h"
#include "weights/hdf5/file.h"
#include "weights/run_folder.h"
#include "weights/sealed_file.h"
#include "weights/written_by.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

namespace rk {
namespace {

namespace fs = std::filesystem;

// A file format and its extension.
struct Format {
  const char* name;
  const char* ending;
};
constexpr Format kHdf5{"HDF5", ".h5"};

// A kind of output: what one file of it is, what many are, and its formats; none: text, which may
// have any extension.
struct Kind {
  FileKind kind;
  const char* one;
  const char* many;
  std::vector<Format> formats;
};

const Kind& described(FileKind kind) {
  static const std::vector<Kind> kKinds = {
      {FileKind::kJson, "JSON", "JSON", {}},
      {FileKind::kPython, "a Python program", "Python programs", {}},
      {FileKind::kPlans, "GPU plans", "GPU plans", {}},
      {FileKind::kEmbeddings, "embeddings", "embeddings", {kHdf5}},
      {FileKind::kNeighbours, "neighbours", "neighbours", {kHdf5}},
      {FileKind::kLoss, "a loss and its gradient", "a loss and its gradient", {kHdf5}},
      {FileKind::kPixels, "an image's pixels", "an image's pixels", {{"PNG", ".png"}, kHdf5}},
      {FileKind::kPng, "a PNG", "pictures", {{"PNG", ".png"}}},
      {FileKind::kReport, "a report", "reports", {{"HTML", ".html"}}},
      {FileKind::kWeights,
       "weights",
       "weights",
       {kHdf5, {"safetensors", ".safetensors"}, {"ONNX", ".onnx"}}}};
  return *std::ranges::find(kKinds, kind, &Kind::kind);
}

// Extensions by which programs choose a format; an output of another format under such a name could
// not be opened.
constexpr std::array<std::string_view, 30> kKnownEndings = {
    ".npy", ".npz",   ".csv",  ".tsv",         ".txt",     ".json",    ".pkl", ".pickle",
    ".pt",  ".pth",   ".ckpt", ".safetensors", ".onnx",    ".parquet", ".h5",  ".html",
    ".tar", ".keras", ".jpg",  ".jpeg",        ".png",     ".gif",     ".bmp", ".webp",
    ".tif", ".tiff",  ".bin",  ".pb",          ".msgpack", ".pdf"};

void check_ending(const OutputFile& output) {
  const Kind& written = described(output.kind);
  const std::string ending = output_ending(output.path);
  // Where the extension chooses the format, a mistyped one would choose another than was meant.
  const bool chooses = written.formats.size() > 1 && output.ending.empty() && !ending.empty();
  const bool known = std::ranges::count(kKnownEndings, ending) > 0;
  if (written.formats.empty() || (!chooses && !known)) return;
  std::vector<std::string> names, calls;
  for (const Format& format : written.formats) {
    if (!output.ending.empty() && output.ending != format.ending) continue;
    if (ending == format.ending) return;
    names.emplace_back(format.name);
    calls.push_back(fs::path(output.path).filename().replace_extension(format.ending).string());
  }
  fail<UsageError>("{} {}: {} are written as {}; call the file {}", output.flag, output.path,
                   written.many, fmt::join(names, " or "), fmt::join(calls, " or "));
}

struct Found {
  std::optional<FileKind> kind;
  std::string name;  // if `kind` is empty
};

Found find_in_hdf5(const std::string& path) {
  Found others{std::nullopt, "HDF5 that Rankine did not write"};
  try {
    const Hdf5Reader file(path);
    // Earlier versions wrote without a mark: embeddings with a network attribute, and pixels.
    const bool pixels = file.has("/tensor") && file.integer_attribute("/", "crop");
    if (!is_signed(file) && !file.has("/network") && !pixels) return others;
    if (file.has("/run")) return {std::nullopt, "a run's checkpoint"};
    if (file.has("/weights")) return {FileKind::kWeights, ""};
    if (file.has("/grad")) return {FileKind::kLoss, ""};
    if (file.has("/pixels")) return {FileKind::kPixels, ""};
    if (file.has("/neighbours")) return {FileKind::kNeighbours, ""};
    if (file.has("/embeddings")) return {FileKind::kEmbeddings, ""};
  } catch (const InputError&) {
    // Not written by Rankine, then.
  }
  return others;
}

// A PNG may be anyone's photo.
Found find_in_png(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (is_encoded_by_rankine(file)) return {FileKind::kPng, ""};
  return {std::nullopt, "a PNG that Rankine did not write"};
}

Found find_in_loader(const std::string& path) {
  constexpr std::size_t kMostBytes = 1 << 16;
  std::string text(kMostBytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), kMostBytes);
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (is_unchanged_python(text)) return {FileKind::kPython, ""};
  return {std::nullopt, "a loader that was changed since convert wrote it"};
}

Found find_kind(const std::string& path) {
  constexpr std::string_view kPngBegins = "\x89PNG\r\n\x1a\n", kHdf5Begins = "\x89HDF\r\n\x1a\n";
  std::array<char, 256> bytes{};
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), bytes.size());
  const std::string_view begins(bytes.data(), static_cast<std::size_t>(file.gcount()));
  if (begins.starts_with(kPngBegins)) return find_in_png(path);
  if (begins.starts_with(kHdf5Begins)) return find_in_hdf5(path);
  if (begins.starts_with("\"\"\"Embeds pictures by ")) return find_in_loader(path);
  if (begins.starts_with(kReportBegins)) return {FileKind::kReport, ""};
  if (begins.starts_with("# ") &&
      begins.substr(0, begins.find('\n')).find(", cuDNN ") != begins.npos) {
    return {FileKind::kPlans, ""};
  }
  // Rankine's ONNX: the version of the format, then the producer.
  if (begins.starts_with("\x08\x08\x12\x07Rankine")) return {FileKind::kWeights, ""};
  // safetensors: a length, then JSON, whose metadata the writer puts first.
  if (begins.size() > 9 && begins[8] == '{' && begins[9] == '"') {
    if (begins.substr(8).starts_with(R"({"__metadata__":{"format":"pt","rankine":)"))
      return {FileKind::kWeights, ""};
    return {std::nullopt, "safetensors that Rankine did not write"};
  }
  const std::size_t text = begins.find_first_not_of(" \t\r\n");
  if (text != std::string_view::npos && (begins[text] == '{' || begins[text] == '[')) {
    if (is_result_of_rankine(path)) return {FileKind::kJson, ""};
    return {std::nullopt, "JSON that no command of Rankine wrote as its result"};
  }
  return {std::nullopt, "a file of another kind"};
}

// The one name of a file that is or would be written, whether or not it is there: a link that leads
// nowhere yet is followed, too.
fs::path place_of(const std::string& name) {
  constexpr int kMostLinks = 40;  // as Linux follows
  std::error_code ignored;
  fs::path path = fs::absolute(name, ignored);
  for (int i = 0; i < kMostLinks && fs::is_symlink(path, ignored); ++i) {
    path = path.parent_path() / fs::read_symlink(path, ignored);
  }
  return fs::weakly_canonical(path, ignored);
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  if (fs::equivalent(a, b, ignored)) return true;
  return place_of(a) == place_of(b);
}

bool lies_in(const std::string& path, const std::string& folder) {
  const fs::path from = place_of(path).lexically_relative(place_of(folder));
  return !from.empty() && *from.begin() != "..";
}

void check_folder(const OutputFile& output) {
  const fs::path folder = fs::path(output.path).parent_path();
  std::error_code ignored;
  if (!folder.empty() && !fs::is_directory(folder, ignored)) {
    const bool made = !output.made.empty() && lies_in(folder.string(), output.made) &&
                      lies_in(output.made, folder.string());
    if (made) return;
    fail<InputError>("{}: cannot be written: there is no folder {}; make it or give another {}",
                     output.path, folder.string(), output.flag);
  }
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0) {
    fail<InputError>("{}: cannot be written: {}: {}; give another {}", output.path,
                     folder.empty() ? "the working folder" : folder.string(), std::strerror(errno),
                     output.flag);
  }
}

void check_kind(const OutputFile& output, bool may_be_forced) {
  std::error_code ignored;
  if (!fs::is_regular_file(output.path, ignored) || fs::file_size(output.path, ignored) == 0)
    return;
  const Found found = find_kind(output.path);
  if (found.kind == output.kind) return;
  fail<InputError>("{}: is {}, and {} would put {} in its place; give another name{}", output.path,
                   found.kind ? described(*found.kind).one : found.name, output.flag,
                   described(output.kind).one, may_be_forced ? ", or --force" : "");
}

// A run creates its lock before it writes anything, and marks run.json as Rankine's.
bool holds_run(const fs::path& folder) {
  std::error_code ignored;
  const fs::path origin = folder / kOriginFile;
  return fs::exists(folder / kLockFile, ignored) ||
         (fs::is_regular_file(origin, ignored) && is_result_of_rankine(origin.string()));
}

// Whether this is the bad_files.txt of a run that was refused because of unreadable pictures in
// `data`; such a run left nothing else.
bool lists_pictures_of(const fs::path& path, const std::vector<std::string>& data) {
  if (path.filename() != kBadImagesFile) return false;
  std::ifstream file(path, std::ios::binary);
  std::string line;
  std::getline(file, line);
  // The path ends at the colon before the reason; tries every ": ", since folder names may contain
  // it.
  for (std::size_t end = line.find(": "); end != std::string::npos;
       end = line.find(": ", end + 1)) {
    const std::string picture = line.substr(0, end);
    if (std::any_of(data.begin(), data.end(), [&](const std::string& pictures) {
          return !pictures.empty() && lies_in(picture, pictures);
        })) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string output_ending(const std::string& path) {
  const std::string ending = lower_case(fs::path(path).extension().string());
  return ending == ".hdf5" ? ".h5" : ending;
}

void check_outputs(const std::vector<OutputFile>& outputs, const std::vector<std::string>& inputs,
                   bool force) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const OutputFile& output = outputs[i];
    if (output.path.empty()) continue;
    if (output.path == kStandardOutput) {
      if (output.kind == FileKind::kJson) continue;
      fail<UsageError>("{} -: only --json can go to standard output; give the name of a file",
                       output.flag);
    }
    std::error_code ignored;
    const fs::file_status status = fs::status(output.path, ignored);
    if (fs::is_directory(status)) {
      fail<InputError>("{}: cannot be written: it is a folder; give another {}", output.path,
                       output.flag);
    }
    // Two outputs may go to one pipe or terminal.
    if (fs::exists(status) && !fs::is_regular_file(status)) {
      if (output.kind == FileKind::kJson) continue;
      fail<InputError>("{}: is not a regular file, so it is not replaced; give another {}",
                       output.path, output.flag);
    }
    for (const std::string& input : inputs) {
      if (input.empty() || !same_file(output.path, input)) continue;
      fail<UsageError>("{} {}: is the file that is read; give another name", output.flag,
                       output.path);
    }
    for (std::size_t k = 0; k < i; ++k) {
      if (outputs[k].path.empty() || !same_file(output.path, outputs[k].path)) continue;
      fail<UsageError>("{} {}: is the file of {} too; give another name", output.flag, output.path,
                       outputs[k].flag);
    }
    check_ending(output);
    check_folder(output);
    const bool read = std::any_of(inputs.begin(), inputs.end(), [&](const std::string& input) {
      return fs::is_directory(input, ignored) && lies_in(output.path, input);
    });
    if (read || !force) check_kind(output, !read);
  }
}

void check_run_files(const std::string& folder,
                     const std::vector<std::pair<std::string, std::string>>& others) {
  const auto check = [&](const char* name, bool checkpoint) {
    const fs::path path = fs::path(folder) / name;
    for (const auto& [flag, other] : others) {
      if (other.empty() || other == kStandardOutput || !same_file(other, path.string())) continue;
      fail<UsageError>("{} {}: is a file of the run itself; give another name", flag, other);
    }
    std::error_code ignored;
    const fs::file_status status = fs::symlink_status(path, ignored);
    if (fs::is_directory(status)) {
      fail<InputError>("{}: is a folder, where a run writes a file; remove it", path.string());
    }
    // Reading a pipe would wait for a writer, for ever.
    if (fs::is_other(status)) {
      fail<InputError>("{}: is a pipe or a device, where a run writes a file; remove it",
                       path.string());
    }
    if (!fs::is_symlink(status)) return;
    if (checkpoint && is_sealed(path.string())) {
      const fs::path place = place_of(path.string());
      if (!holds_run(place.parent_path())) return;
      fail<InputError>(
          "{}: is a link to {}, a file of a run, which this one would replace; put a copy there, "
          "or give another --out",
          path.string(), place.string());
    }
    fail<InputError>(
        "{}: is a link, and a run would write where it leads; remove it, or give another --out",
        path.string());
  };
  for (const char* name : kRunCheckpoints) check(name, true);
  for (const char* name : kRunTexts) check(name, false);
  check(kLockFile, false);
}

void check_run_folder(const std::string& folder, const std::vector<std::string>& data, bool force) {
  for (const std::string& pictures : data) {
    if (pictures.empty() || !lies_in(folder, pictures)) continue;
    fail<UsageError>(
        "--out {}: is or lies in {}, the folder of the pictures, where it would be taken for a "
        "class; give another",
        folder, pictures);
  }
  const fs::path out = folder;
  if (force || holds_run(out)) return;
  std::error_code ignored;
  for (const char* name : kRunTexts) {
    if (!fs::exists(out / name, ignored) || lists_pictures_of(out / name, data)) continue;
    fail<InputError>(
        "{}: is no run's, and a run would put its own in its place; give another --out, or --force",
        (out / name).string());
  }
}

}  // namespace rk
