#include "weights/checkpoint.h"

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/base/shape.h"
#include "weights/run_folder.h"
#include "weights/written_by.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace rk {
namespace {

constexpr std::int64_t kVersion = 1;

const std::string kWeights = "/weights/";
const std::string kClassifier = "fc.";  // of imported weights; no network has it
const std::string kLoss = "/loss/";
const std::string kMemory = "/memory/";
const std::string kOptimizer = "/optimizer/";

bool begins_with_any(const std::string& name, const std::vector<std::string>& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](const std::string& beginning) { return name.starts_with(beginning); });
}

std::vector<double> as_vector(const std::array<double, 3>& values) {
  return {values.begin(), values.end()};
}

std::array<double, 3> three(const Hdf5Reader& file, const std::string& name) {
  const auto values = file.number_attribute("/", name);
  if (!values || values->size() != 3) {
    fail<InputError>("{}: attribute {} should hold three numbers; use another checkpoint",
                     file.name(), name);
  }
  return {(*values)[0], (*values)[1], (*values)[2]};
}

template <class T>
T present(const Hdf5Reader& file, const std::optional<T>& value, const std::string& name) {
  if (!value) {
    fail<InputError>("{}: attribute {} is missing; use another checkpoint", file.name(), name);
  }
  return *value;
}

std::string text(const Hdf5Reader& file, const std::string& name) {
  return present(file, file.text_attribute("/", name), name);
}

std::int64_t integer(const Hdf5Reader& file, const std::string& name) {
  return present(file, file.integer_attribute("/", name), name);
}

double number(const Hdf5Reader& file, const std::string& name) {
  return present(file, file.number_attribute("/", name), name).at(0);
}

template <class T> T scalar(const Hdf5Reader& file, const std::string& dataset) {
  T value{};
  file.read_into(dataset, {}, &value);
  return value;
}

Seal checked_seal(const std::string& path) {
  require_checkpoint_file(path);
  return check_seal(path);
}

// Opens the file whose seal was checked; throws InputError if another file has replaced it.
Hdf5Reader opened(const std::string& path, const Seal& seal) {
  Hdf5Reader file(path);
  if (file.identity() != seal.file) {
    fail<InputError>("{}: was replaced while it was read; try it again", path);
  }
  return file;
}

bool is_sha256(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
}

// A comparison, which is false for NaN too.
bool finite(float value) { return std::abs(value) <= std::numeric_limits<float>::max(); }

}  // namespace

CheckpointWriter::CheckpointWriter(const ModelDescription& model, std::size_t expected_bytes)
    : file_(expected_bytes) {
  file_.set_attribute("/", "format", kCheckpointFormat);
  file_.set_attribute("/", "version", kVersion);
  sign(file_);
  file_.set_attribute("/", "arch", model.arch);
  file_.set_attribute("/", "pool", model.pool);
  file_.set_attribute("/", "gem_p", model.gem_p);
  file_.set_attribute("/", "dim", model.dim);
  file_.set_attribute("/", "stride_in_1x1", std::int64_t{model.stride_in_1x1});
  file_.set_attribute("/", "input_mean", as_vector(model.input_mean));
  file_.set_attribute("/", "input_std", as_vector(model.input_std));
  file_.set_attribute("/", "input_scale", model.input_scale);
  file_.set_attribute("/", "channel_order", model.channel_order);
  file_.set_attribute("/", "resize", model.resize);
  file_.set_attribute("/", "interpolation", model.interpolation);
  file_.set_attribute("/", "crop", model.crop);
  if (model.stretch) file_.set_attribute("/", "stretch", std::int64_t{1});
  if (model.upright) file_.set_attribute("/", "exif", "turn");
  file_.set_attribute("/", "source_sha256", model.source_sha256);
}

CheckpointWriter::CheckpointWriter(const ModelDescription& model, const RunState& run)
    : CheckpointWriter(model) {
  const auto seed = std::bit_cast<std::int64_t>(run.seed);
  file_.write("/run/step", {}, &run.step);
  file_.write("/run/epoch", {}, &run.epoch);
  file_.write("/run/batch", {}, &run.batch);
  file_.write("/run/seed", {}, &seed);
  file_.write("/run/best", {}, &run.best);
  file_.write("/run/since_best", {}, &run.since_best);
  file_.write("/run/loss_sum", {}, &run.loss_sum);
  file_.write_text("/run/data", {run.data});
  file_.write_text("/run/held_out", {run.held_out});
  file_.write_text("/run/environment", {run.environment});
  file_.write_text("/run/settings", {run.settings});
  file_.write_text("/run/history", run.history);
  file_.write_text("/run/classes", run.classes);
  if (!run.held_out_classes.empty()) {
    file_.write_text("/run/held_out_classes", run.held_out_classes);
  }
  if (!run.bad_images.empty()) {
    file_.write("/run/bad_images", {std::ssize(run.bad_images)}, run.bad_images.data());
  }
  if (run.loss_scale.scale == 0) return;
  file_.write("/run/loss_scale", {}, &run.loss_scale.scale);
  file_.write("/run/updates", {}, &run.loss_scale.updates);
  file_.write("/run/good_steps", {}, &run.loss_scale.good_steps);
}

void CheckpointWriter::weight(const std::string& name, const std::vector<std::int64_t>& dims,
                              const float* values) {
  file_.write(kWeights + name, dims, values);
}

void CheckpointWriter::counter(const std::string& name, std::int64_t value) {
  file_.write(kWeights + name, {}, &value);
}

void CheckpointWriter::loss_parameter(const std::string& name,
                                      const std::vector<std::int64_t>& dims, const float* values) {
  file_.write(kLoss + name, dims, values);
}

void CheckpointWriter::memory(const MemoryColumns& columns) {
  const auto rows = static_cast<std::int64_t>(columns.labels.size());
  file_.write(kMemory + "embeddings", {rows, columns.dim}, columns.embeddings.data());
  file_.write(kMemory + "labels", {rows}, columns.labels.data());
  file_.write(kMemory + "identities", {rows}, columns.image_ids.data());
  file_.write(kMemory + "next", {}, &columns.next);
}

void CheckpointWriter::optimizer_state(const std::string& state, const std::string& name,
                                       const std::vector<std::int64_t>& dims, const float* values) {
  file_.write(kOptimizer + state + "/" + name, dims, values);
}

std::vector<std::byte> CheckpointWriter::finish() {
  std::vector<std::byte> bytes = file_.finish(kSealBytes);
  seal(bytes);
  return bytes;
}

Checkpoint::Checkpoint(const std::string& path) : Checkpoint(path, checked_seal(path)) {}

Checkpoint::Checkpoint(const std::string& path, const Seal& seal)
    : Checkpoint(opened(path, seal), hexadecimal(seal.digest)) {}

Checkpoint::Checkpoint(const std::string& path, std::span<const std::byte> file)
    : Checkpoint(Hdf5Reader(file, path), hexadecimal(rk::sha256(file))) {}

Checkpoint::Checkpoint(Hdf5Reader file, std::string sha256)
    : path_(file.name()), sha256_(std::move(sha256)), file_(std::move(file)) {
  if (file_.text_attribute("/", "format") != kCheckpointFormat) {
    fail<InputError>("{}: is not a checkpoint; give last.h5 or best.h5 of a run", path_);
  }
  if (const std::int64_t version = integer(file_, "version"); version != kVersion) {
    fail<OtherVersion>("{}: has version {} of the format, this program reads {}; use {} Rankine",
                       path_, version, kVersion, version > kVersion ? "a newer" : "an older");
  }
  read_model();
  has_run_ = file_.has("/run");
  if (has_run_) read_run();
  check_values();
}

std::string Checkpoint::network() const {
  std::string all = fmt::format(
      "{} {} {} {} {} {} {} {} {} {} {}", model_.arch, model_.pool, model_.gem_p, model_.dim,
      model_.stride_in_1x1, fmt::join(model_.input_mean, ","), fmt::join(model_.input_std, ","),
      model_.input_scale, model_.channel_order, model_.resize, model_.crop);
  if (model_.stretch) all += " stretch";
  for (const std::string& path : file_.datasets(kWeights)) {
    if (file_.info(path).kind != Hdf5Reader::Kind::kFloat) continue;
    const std::vector<float> values = file_.read<float>(path);
    all += fmt::format(" {} {}", path, hexadecimal(rk::sha256(std::as_bytes(std::span(values)))));
  }
  return hexadecimal(rk::sha256(std::as_bytes(std::span(all))));
}

void Checkpoint::read_model() {
  model_.arch = text(file_, "arch");
  model_.pool = text(file_, "pool");
  model_.gem_p = number(file_, "gem_p");
  model_.dim = integer(file_, "dim");
  model_.stride_in_1x1 = integer(file_, "stride_in_1x1") != 0;
  model_.input_mean = three(file_, "input_mean");
  model_.input_std = three(file_, "input_std");
  model_.input_scale = number(file_, "input_scale");
  model_.channel_order = text(file_, "channel_order");
  model_.resize = integer(file_, "resize");
  model_.crop = integer(file_, "crop");
  model_.source_sha256 = text(file_, "source_sha256");
  if (!model_.source_sha256.empty() && !is_sha256(model_.source_sha256)) {
    fail<InputError>(
        "{}: attribute source_sha256 is neither empty nor 64 hexadecimal digits; use another "
        "checkpoint",
        path_);
  }
  // Early files of version 0.1.0 do not record it.
  if (const auto way = file_.text_attribute("/", "interpolation")) model_.interpolation = *way;
  model_.stretch = file_.integer_attribute("/", "stretch").value_or(0) != 0;
  model_.upright = file_.text_attribute("/", "exif") == "turn";
  check_model(model_, path_);
}

void Checkpoint::read_run() {
  run_.step = scalar<std::int64_t>(file_, "/run/step");
  run_.epoch = scalar<std::int64_t>(file_, "/run/epoch");
  run_.batch = scalar<std::int64_t>(file_, "/run/batch");
  run_.seed = std::bit_cast<std::uint64_t>(scalar<std::int64_t>(file_, "/run/seed"));
  run_.best = scalar<double>(file_, "/run/best");
  run_.loss_sum = scalar<double>(file_, "/run/loss_sum");
  if (file_.has("/run/since_best")) {
    run_.since_best = scalar<std::int64_t>(file_, "/run/since_best");
  }
  const auto settings = file_.read_text("/run/settings"), data = file_.read_text("/run/data");
  const auto counts = [](std::int64_t value) { return value >= 0 && value <= kMostCounted; };
  if (settings.size() != 1 || data.size() != 1 || !counts(run_.step) || !counts(run_.epoch) ||
      !counts(run_.batch) || !counts(run_.since_best) || !std::isfinite(run_.best) ||
      !std::isfinite(run_.loss_sum)) {
    fail<InputError>("{}: /run makes no sense; use another checkpoint", path_);
  }
  run_.settings = settings[0];
  run_.data = data[0];
  // Early files of version 0.1.0 do not record it.
  if (file_.has("/run/environment")) {
    for (const std::string& text : file_.read_text("/run/environment")) run_.environment = text;
  }
  if (file_.has("/run/held_out")) {
    for (const std::string& text : file_.read_text("/run/held_out")) run_.held_out = text;
  }
  run_.history = file_.read_text("/run/history");
  if (file_.has("/run/classes")) run_.classes = file_.read_text("/run/classes");
  if (file_.has("/run/held_out_classes")) {
    run_.held_out_classes = file_.read_text("/run/held_out_classes");
  }
  if (file_.has("/run/bad_images")) {
    run_.bad_images = file_.read<std::int64_t>("/run/bad_images");
  }
  if (!file_.has("/run/loss_scale")) return;
  run_.loss_scale = {.updates = scalar<std::int64_t>(file_, "/run/updates"),
                     .scale = scalar<double>(file_, "/run/loss_scale"),
                     .good_steps = scalar<std::int64_t>(file_, "/run/good_steps")};
  if (!(run_.loss_scale.scale > 0 && std::isfinite(run_.loss_scale.scale)) ||
      !counts(run_.loss_scale.updates) || !counts(run_.loss_scale.good_steps)) {
    fail<InputError>("{}: /run/loss_scale makes no sense; use another checkpoint", path_);
  }
}

void Checkpoint::check_values() const {
  std::vector<std::string> paths = file_.datasets(kWeights);
  for (const std::string& group : {kLoss, kMemory}) {
    for (std::string& path : file_.datasets(group)) paths.push_back(std::move(path));
  }
  for (const std::string& path : paths) {
    // Integers too, since they could be read as weights. Text is refused before it takes memory.
    file_.visit<float>(path, [&](std::span<const float> values) {
      if (!std::all_of(values.begin(), values.end(), finite)) {
        fail<InputError>("{}: {} holds NaN or infinity; use an earlier checkpoint", path_,
                         path.starts_with(kWeights) ? path.substr(kWeights.size()) : path);
      }
      if (path.ends_with("running_var") &&
          std::any_of(values.begin(), values.end(), [](float v) { return v < 0; })) {
        fail<InputError>("{}: {} holds a negative variance; use another checkpoint", path_,
                         path.substr(kWeights.size()));
      }
    });
  }
}

void Checkpoint::require(const std::vector<TensorName>& weights,
                         const std::vector<std::string>& counters,
                         const std::vector<std::string>& optional) const {
  std::vector<std::string> missing, mismatched, unexpected;
  std::vector<std::string> known = counters;
  for (const TensorName& tensor : weights) {
    known.push_back(tensor.name);
    const std::string path = kWeights + tensor.name;
    if (!file_.has(path)) {
      if (!begins_with_any(tensor.name, optional)) missing.push_back(tensor.name);
    } else if (const auto dims = file_.info(path).dims;
               dims != tensor.dims && !begins_with_any(tensor.name, optional)) {
      mismatched.push_back(fmt::format("{} {} where {} is expected", tensor.name, shape_text(dims),
                                       shape_text(tensor.dims)));
    }
  }
  for (const std::string& name : counters) {
    if (!file_.has(kWeights + name)) missing.push_back(name);
  }
  std::sort(known.begin(), known.end());
  for (const std::string& path : file_.datasets(kWeights)) {
    const std::string name = path.substr(kWeights.size());
    if (!std::binary_search(known.begin(), known.end(), name) && !begins_with_any(name, optional) &&
        !name.starts_with(kClassifier)) {
      unexpected.push_back(name);
    }
  }
  if (missing.empty() && mismatched.empty() && unexpected.empty()) return;
  std::string found;
  const auto add = [&](const char* what, const std::vector<std::string>& names) {
    if (names.empty()) return;
    found +=
        fmt::format("{}{} {}: {}", found.empty() ? "" : "; ", names.size(), what, listed(names));
  };
  add("missing", missing);
  add("not expected", unexpected);
  add("of another shape", mismatched);
  fail<InputError>(
      "{}: its tensors ({}) are not those of this network: {}; set --arch, --pool and "
      "--dim as in the run it comes from",
      path_, model_.arch, found);
}

bool Checkpoint::has_weight(const TensorName& tensor) const {
  return weight_dims(tensor.name) == tensor.dims;
}

std::optional<std::vector<std::int64_t>> Checkpoint::weight_dims(const std::string& name) const {
  return dims_of(kWeights + name);
}

std::optional<std::vector<std::int64_t>> Checkpoint::loss_dims(const std::string& name) const {
  return dims_of(kLoss + name);
}

std::optional<std::vector<std::int64_t>> Checkpoint::dims_of(const std::string& path) const {
  if (!file_.has(path)) return std::nullopt;
  return file_.info(path).dims;
}

void Checkpoint::weight(const TensorName& tensor, float* out) const {
  file_.read_into(kWeights + tensor.name, tensor.dims, out);
}

std::vector<float> Checkpoint::weight(const std::string& name) const {
  return file_.read<float>(kWeights + name);
}

void Checkpoint::visit_weight(const std::string& name, const Hdf5Reader::Use<float>& use) const {
  file_.visit<float>(kWeights + name, use);
}

std::int64_t Checkpoint::counter(const std::string& name) const {
  return scalar<std::int64_t>(file_, kWeights + name);
}

void Checkpoint::loss_parameter(const TensorName& tensor, float* out) const {
  const std::string path = kLoss + tensor.name;
  const std::string wanted = shape_text(tensor.dims);
  if (!file_.has(path)) {
    fail<InputError>(
        "{}: was trained without the loss's {} {}; begin a new run with --weights, or leave --loss "
        "as it was",
        path_, tensor.name, wanted);
  }
  if (file_.info(path).dims != tensor.dims) {
    fail<InputError>("{}: its {} are {}, {} are expected; restore the data or begin a new run",
                     path_, tensor.name, shape_text(file_.info(path).dims), wanted);
  }
  file_.read_into(path, tensor.dims, out);
}

std::int64_t Checkpoint::memory_rows() const {
  const std::string path = kMemory + "embeddings";
  if (!file_.has(path)) return 0;
  const auto dims = file_.info(path).dims;
  return dims.empty() ? 0 : dims[0];
}

std::int64_t Checkpoint::memory(std::int64_t dim, float* embeddings, std::int64_t* labels,
                                std::int64_t* image_ids) const {
  const std::int64_t rows = memory_rows();
  file_.read_into(kMemory + "embeddings", {rows, dim}, embeddings);
  file_.read_into(kMemory + "labels", {rows}, labels);
  file_.read_into(kMemory + "identities", {rows}, image_ids);
  return scalar<std::int64_t>(file_, kMemory + "next");
}

void Checkpoint::optimizer_state(const std::string& state, const TensorName& tensor,
                                 float* out) const {
  file_.read_into(kOptimizer + state + "/" + tensor.name, tensor.dims, out);
}

}  // namespace rk
