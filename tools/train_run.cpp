#include "tools/train_run.h"

#include "engine/error.h"
#include "engine/parallel.h"
#include "retrieval/evaluate.h"
#include "tools/json_file.h"
#include "tools/metrics_report.h"
#include "tools/model_io.h"
#include "tools/progress.h"
#include "tools/signals.h"
#include "weights/atomic_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <utility>

namespace rk {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr const char* kChoosingMetric = "map_at_r";  // steadier than R@1, which it goes along with
constexpr double kMebibyte = 1 << 20;
constexpr std::int64_t kImagesChecked = 5000;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string fingerprint(const Dataset& data) {
  return fmt::format("{} images {:016x}", data.size(), data.fingerprint());
}

double number_or(const ordered_json& object, const char* key, double otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : otherwise;
}

LoaderOptions loader_options(const TrainSettings& settings, std::uint64_t seed) {
  LoaderOptions options;
  options.workers = settings.workers;
  options.cache_bytes = settings.cache << 20;
  options.max_bad = settings.max_bad;
  options.seed = seed;
  options.end_epoch = settings.epochs;
  return options;
}

// Quoted for a shell where it has to be.
std::string shell_word(const std::string& text) {
  if (text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             "_-./=:,+@%") == std::string::npos) {
    return text;
  }
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

TrainRun::TrainRun(const Context& context, const CommonOptions& common,
                   const TrainSettings& settings, TrainPlan plan)
    : context_(context),
      common_(common),
      settings_(settings),
      plan_(std::move(plan)),
      train_data_(open_dataset(settings.data, Split::kTrain)) {
  open_test_data();
  sampler_ = make_sampler(fmt::format("pk:k={}", settings.per_class), train_data_, settings.batch,
                          common.seed, settings.batches);
  trainer_ = std::make_unique<Trainer>(
      context, trainer_options(settings, common.seed, sampler_->batches_per_epoch()));
  embedder_ = std::make_unique<Embedder>(context, trainer_->parameters(),
                                         model_description(settings), settings.eval_batch);
  embedder_->plan();
  run_.seed = common.seed;
  run_.data = fingerprint(train_data_);
  run_.settings = plan_.settings.dump();
  if (plan_.checkpoint) {
    start_from_checkpoint();
  } else if (!settings.weights.empty()) {
    start_from_weights();
  }
}

void TrainRun::open_test_data() {
  if (settings_.test_data == "none") return;
  if (!settings_.test_data.empty()) {
    const DataSpec spec = parse_data_spec(settings_.test_data);
    const std::vector<Split> splits = dataset_splits(spec);
    // A data set of its own: its test split, or all of it.
    test_data_ = open_dataset(spec, splits.size() > 1 ? splits.back() : Split::kTest);
    return;
  }
  const DataSpec spec = parse_data_spec(settings_.data);
  const std::vector<Split> splits = dataset_splits(spec);
  if (splits.size() < 2) {
    fail<UsageError>(
        "--data {}: holds no classes out to evaluate on; add ,val_classes=0.2, or give "
        "--test-data SPEC (none: do not evaluate)",
        spec.text());
  }
  test_data_ = open_dataset(spec, splits[1]);
}

void TrainRun::start_from_weights() {
  const Checkpoint checkpoint(settings_.weights);
  const bool whole = load_starting_point(checkpoint, trainer_->parameters());
  source_sha256_ = checkpoint.sha256();
  note(fmt::format("weights: {}{}", settings_.weights,
                   whole ? "" : " (but not its embedding layer, which has another size)"));
}

void TrainRun::start_from_checkpoint() {
  const Checkpoint& checkpoint = *plan_.checkpoint;
  if (checkpoint.run().data != run_.data) {
    fail<InputError>(
        "{}: was trained on {}, --data is now {}; restore the data, or start a new run with "
        "--weights {}",
        checkpoint.path(), checkpoint.run().data, run_.data, checkpoint.path());
  }
  trainer_->load(checkpoint);
  const std::string settings = std::move(run_.settings);
  run_ = checkpoint.run();
  run_.settings = settings;
  run_.seed = common_.seed;
  source_sha256_ = checkpoint.model().source_sha256;
  // metrics.jsonl may be behind the checkpoint or ahead of it by what a kill cut off.
  std::ifstream file(fs::path(settings_.out) / "metrics.jsonl");
  std::string line;
  for (const std::string& entry : run_.history) {
    const bool there =
        std::getline(file, line) && line.starts_with(entry.substr(0, entry.size() - 1));
    lines_.push_back(there ? line : entry);
    if (!there) file.setstate(std::ios::failbit);
  }
  plan_.checkpoint.reset();  // as large as the network and the optimizer's state together
}

void TrainRun::describe() const {
  const ModelDescription model = model_description(settings_);
  note(fmt::format("network: {}, {} pooling, {} numbers, {:.2f} million parameters, batch norm {}",
                   model.arch, model.pool, model.dim,
                   static_cast<double>(trainer_->parameters().trainable_elements()) * 1e-6,
                   settings_.bn));
  note(fmt::format("data: {}, {} images of {} classes; {} batches an epoch of {} classes x {}",
                   settings_.data, train_data_.size(), train_data_.classes().size(),
                   sampler_->batches_per_epoch(), settings_.batch / settings_.per_class,
                   settings_.per_class));
  if (test_data_) {
    note(fmt::format("held out: {} images of {} other classes", test_data_->size(),
                     test_data_->classes().size()));
  }
  note(fmt::format("loss: {}", settings_.loss));
  std::string memory = "memory in MiB:";
  auto groups = trainer_->memory();
  const LoaderOptions loading;
  groups.emplace_back("evaluation", embedder_->plan());
  groups.emplace_back("loader", static_cast<std::size_t>(loading.prefetch * settings_.batch * 3) *
                                    static_cast<std::size_t>(settings_.image_size) *
                                    static_cast<std::size_t>(settings_.image_size));
  double total = 0;
  for (const auto& [name, bytes] : groups) {
    memory += fmt::format(" {} {:.1f},", name, static_cast<double>(bytes) / kMebibyte);
    total += static_cast<double>(bytes) / kMebibyte;
  }
  note(fmt::format("{} together {:.1f}; decoded images up to {}", memory, total, settings_.cache));
}

// Most mistakes in a folder of photos show in its first thousands; the loader finds the rest.
void TrainRun::check_images() {
  if (train_data_.size() == 0 || train_data_.items().front().path.empty())
    return;  // drawn, not read
  const std::int64_t count = std::min(train_data_.size(), kImagesChecked);
  const std::int64_t allowed = settings_.max_bad >= 0
                                   ? settings_.max_bad
                                   : std::max<std::int64_t>(10, train_data_.size() / 1000);
  Progress progress("checking images", count, "images", common_.quiet);
  std::vector<std::string> bad;
  std::mutex mutex;
  constexpr std::int64_t kAtATime = 64;  // between two looks at signals
  for (std::int64_t begin = 0; begin < count; begin += kAtATime) {
    if (interrupted()) stop();
    const std::int64_t end = std::min(count, begin + kAtATime);
    parallel_for(context_.threads(), end - begin, [&](std::int64_t i, int) {
      try {
        train_data_.load(begin + i);
      } catch (const std::exception& error) {
        const std::lock_guard guard(mutex);
        bad.emplace_back(error.what());
      }
    });
    progress.update(end);
  }
  if (static_cast<std::int64_t>(bad.size()) <= allowed) return;
  std::sort(bad.begin(), bad.end());
  fail<InputError>("{} ({} of {} images cannot be read; --max-bad {} trains on the others)", bad[0],
                   bad.size(), count, bad.size());
}

void TrainRun::prepare_folder() {
  std::error_code error;
  fs::create_directories(settings_.out, error);
  if (error) {
    fail<InputError>("{}: cannot be made ({}); give another --out", settings_.out, error.message());
  }
  if (!plan_.lock) plan_.lock = std::make_unique<FolderLock>(settings_.out);
  prepared_ = true;
  remove_stale_temporaries(settings_.out);
  write_atomic(fs::path(settings_.out) / "settings.toml", bytes_of(plan_.settings_toml));
}

void TrainRun::execute() {
  describe();
  if (run_.epoch >= settings_.epochs) {
    say(fmt::format("{}: all {} epochs are done; more with --epochs", settings_.out, run_.epoch));
    if (!common_.json.empty()) write_json(common_.json, result());
    return;
  }
  if (run_.step == 0) check_images();
  if (run_.history.empty()) {
    const auto start = Clock::now();
    ordered_json entry = {{"epoch", 0}, {"step", 0}};
    entry.update(evaluate_held_out());
    record(std::move(entry), {{"eval_seconds", seconds_since(start)}});
  }
  prepare_folder();
  write_lines();
  const std::int64_t batches = sampler_->batches_per_epoch();
  LoaderOptions loading = loader_options(settings_, common_.seed);
  const bool between = run_.batch >= batches;  // stopped while it evaluated
  loading.first_epoch = run_.epoch + (between ? 1 : 0);
  loading.first_batch = between ? 0 : run_.batch;
  loader_ = std::make_unique<Loader>(train_data_, *sampler_, augment_options(settings_), loading);
  try {
    while (run_.epoch < settings_.epochs) train_epoch();
  } catch (const DivergedError& error) {
    std::error_code ignored;
    const std::string last = (fs::path(settings_.out) / kLastFile).string();
    fail<DivergedError>("{}{}", error.what(),
                        fs::exists(last, ignored) ? "; the last good checkpoint is " + last : "");
  }
  print_summary();
  if (!common_.json.empty()) write_json(common_.json, result());
}

void TrainRun::train_epoch() {
  const std::int64_t batches = sampler_->batches_per_epoch();
  const auto start = Clock::now();
  const std::int64_t first = run_.batch;
  {
    Progress progress(fmt::format("epoch {}/{}", run_.epoch + 1, settings_.epochs),
                      (batches - first) * settings_.batch, "images", common_.quiet);
    while (run_.batch < batches) {
      const Batch* batch = loader_->next();
      expect(batch != nullptr && batch->epoch == run_.epoch && batch->index == run_.batch,
             "[train] the loader is not where the run is");
      after_step(trainer_->step(*batch));
      progress.update((run_.batch - first) * settings_.batch,
                      fmt::format("loss {:.4f}", run_.loss_sum / static_cast<double>(run_.batch)));
      if (interrupted()) {
        progress.finish();
        stop();
      }
    }
  }
  report_bad_images();
  finish_epoch(seconds_since(start));
}

void TrainRun::after_step(const StepResult& result) {
  run_.loss_sum += result.loss;
  ++run_.batch;
  run_.step = trainer_->steps();
  if (result.valid_queries == 0) {
    note(fmt::format("step {}: no query had a positive; nothing was learnt from it", run_.step));
  }
}

void TrainRun::report_bad_images() {
  const auto& bad = loader_->bad_images();
  if (bad.size() == bad_reported_) return;
  std::string list;
  for (std::size_t i = 0; i < bad.size(); ++i) {
    if (i >= bad_reported_) note(fmt::format("left out: {}", one_line(bad[i].reason)));
    list += one_line(bad[i].reason) + "\n";
  }
  bad_reported_ = bad.size();
  write_atomic(fs::path(settings_.out) / "bad_files.txt", bytes_of(list));
}

void TrainRun::finish_epoch(double seconds) {
  require_finite();
  const auto batches = static_cast<double>(sampler_->batches_per_epoch());
  const auto start = Clock::now();
  ordered_json entry = {
      {"epoch", run_.epoch + 1}, {"step", run_.step}, {"loss", run_.loss_sum / batches}};
  entry.update(evaluate_held_out());
  const double images = batches * static_cast<double>(settings_.batch);
  ordered_json timing = {{"seconds", seconds},
                         {"images_per_second", images / seconds},
                         {"eval_seconds", seconds_since(start)},
                         {"waited_for_images", loader_->waited_seconds()}};
  // Without held-out classes every epoch is the best so far.
  const double value = number_or(entry, kChoosingMetric, test_data_ ? -1.0 : run_.best + 1.0);
  const bool best = value > run_.best || run_.epoch == 0;
  if (best) run_.best = value;
  ++run_.epoch;
  run_.batch = 0;
  run_.loss_sum = 0;
  record(std::move(entry), timing);
  const std::vector<std::byte> bytes = state();
  // The best one first: a run killed between the two repeats this epoch, to the same end.
  if (best) save_best(settings_.out, bytes, files_);
  save_as_last(bytes);
  write_lines();
}

ordered_json TrainRun::evaluate_held_out() {
  if (!test_data_) return ordered_json::object();
  std::optional<Metrics> metrics;
  {
    Progress progress("evaluating", test_data_->size(), "images", common_.quiet);
    EmbedOptions options;
    options.workers = settings_.workers;
    options.progress = [&](std::int64_t done) { progress.update(done); };
    const std::optional<EmbeddingSet> set = embedder_->embed(*test_data_, options);
    if (set) {
      EvaluateOptions how;
      how.interrupted = interrupted;
      metrics = evaluate(context_, set->view(), nullptr, how);
    }
  }
  if (!metrics) stop();
  return ordered_json(metrics_json(*metrics));
}

void TrainRun::record(ordered_json entry, const ordered_json& timing) {
  const auto metric = [&](const char* name, const char* key) {
    const double value = number_or(entry, key, std::nan(""));
    return std::isnan(value) ? std::string() : fmt::format("  {} {:.4f}", name, value);
  };
  std::string text =
      fmt::format("epoch {}/{}", entry["epoch"].get<std::int64_t>(), settings_.epochs);
  text += metric("loss", "loss") + metric("R@1", "recall_at_1") + metric("MAP@R", "map_at_r");
  if (timing.contains("images_per_second")) {
    text += fmt::format("  {:.0f} images/s", timing["images_per_second"].get<double>());
  } else {
    text += "  untrained";
  }
  say(text);
  run_.history.push_back(entry.dump());
  entry.update(timing);
  lines_.push_back(entry.dump());
}

void TrainRun::write_lines() const {
  std::string text;
  for (const std::string& line : lines_) text += line + "\n";
  write_atomic(fs::path(settings_.out) / "metrics.jsonl", bytes_of(text));
}

// The last update may have been one too far although loss and gradient were finite.
void TrainRun::require_finite() const {
  if (trainer_->finite()) return;
  fail<DivergedError>(
      "training diverged: after step {} the network holds NaN or infinity; lower --lr", run_.step);
}

std::vector<std::byte> TrainRun::state() const {
  require_finite();
  ModelDescription model = model_description(settings_);
  model.source_sha256 = source_sha256_;
  CheckpointWriter writer(model, run_);
  trainer_->save(writer);
  return writer.finish();
}

void TrainRun::save_as_last(std::span<const std::byte> bytes) {
  save_last(settings_.out, bytes, files_,
            std::exchange(plan_.last_damaged, false) ? Rotate::kDropDamaged : Rotate::kKeepLast);
}

void TrainRun::stop() {
  if (!prepared_) stop_if_interrupted();  // there is nothing worth keeping yet
  save_as_last(state());
  const std::string where =
      run_.batch > 0 ? fmt::format("after batch {} of epoch {}", run_.batch, run_.epoch + 1)
                     : fmt::format("after epoch {}", run_.epoch);
  throw Interrupted(fmt::format("stopped {}; saved; go on with: train --out {} --resume auto",
                                where, shell_word(settings_.out)));
}

void TrainRun::print_summary() const {
  if (test_data_) {
    const ordered_json outcome = result();
    say(fmt::format(
        "held-out classes: R@1 {:.4f} untrained, {:.4f} trained; MAP@R {:.4f}, {:.4f} (best "
        "{:.4f})",
        number_or(outcome["before"], "recall_at_1", 0),
        number_or(outcome["after"], "recall_at_1", 0), number_or(outcome["before"], "map_at_r", 0),
        number_or(outcome["after"], "map_at_r", 0), run_.best));
  }
  say(fmt::format("{}: best.h5, last.h5, metrics.jsonl, settings.toml", settings_.out));
}

ordered_json TrainRun::result() const {
  const auto entry = [&](std::size_t at) {
    return at < lines_.size() ? ordered_json::parse(lines_[at]) : ordered_json::object();
  };
  return {{"out", settings_.out},
          {"epochs", run_.epoch},
          {"steps", run_.step},
          {"before", entry(0)},
          {"after", entry(lines_.empty() ? 0 : lines_.size() - 1)},
          {"best", {{kChoosingMetric, run_.best}}},
          {"settings", plan_.settings},
          {"device", common_.device},
          {"threads", context_.threads()},
          {"version", RK_VERSION}};
}

void TrainRun::say(const std::string& line) const {
  if (common_.quiet) return;
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void TrainRun::note(const std::string& line) const {
  if (!common_.quiet) fmt::print(stderr, "{}\n", line);
}

}  // namespace rk
