#include "tools/train/train_command.h"

#include "data/sources/open_dataset.h"
#include "engine/base/error.h"
#include "engine/base/note.h"
#include "layers/graphs/graph_runner.h"
#include "tools/cli/flags/precision_on_cpu.h"
#include "tools/cli/flags/threads.h"
#include "tools/cli/messages.h"
#include "tools/cli/output_files.h"
#include "tools/common/stored_settings.h"
#include "tools/train/run/resume.h"
#include "tools/train/settings/recipe_path.h"
#include "tools/train/settings/train_flags.h"
#include "tools/train/train_run.h"
#include "training/training_exif.h"
#include "weights/foreign/weight_files.h"
#include "weights/run_folder.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rk {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// Throws InputError if data that no flag names, but `origin`, are missing. start: the folder that
// relative paths begin in.
void require_found(const std::string& flag, const std::string& spec, const std::string& origin,
                   const std::string& start, const std::string& advice) {
  if (spec.empty() || spec == "none") return;
  const std::string path = read_data_spec(spec).path;
  std::error_code ignored;
  if (path.empty() || fs::exists(path, ignored)) return;
  fail<InputError>("{}: no such folder; it is the {} of {}{}; {}give {} SPEC where it lies", path,
                   flag, origin,
                   fs::path(path).is_absolute() ? "" : ", relative to the folder in which " + start,
                   advice, flag);
}

class Train final : public Command {
 public:
  void add_options(Flags& flags) override { add_train_options(flags, table_, settings_); }
  bool runs_on_cuda() const override { return true; }
  const char* less_memory() const override { return "--chunk, --batch, --eval-batch"; }
  std::string makes_folder() const override { return settings_.out; }
  bool shares_work() const override { return true; }
  const char* quiet_help() const override {
    return "print errors alone, and how a stopped run goes on; metrics.jsonl in --out has what "
           "each epoch gave";
  }

  void run(const CommonOptions& common) override {
    table_.group("Common");
    table_.include("seed", common.seed);
    table_.include("threads", common.threads);
    refuse_conflicts(table_, settings_);
    const std::set<std::string> given = table_.all_given();  // before recipe and checkpoint
    if (!settings_.recipe.empty()) take_recipe(common, given);
    check_values(settings_);  // before the folder is looked at
    RunStart start;
    take_folder(common, start);
    find_start(common, start);
    check_result(common);  // what is read may be named by the checkpoint
    for (const std::string& line : without_effect(given, settings_)) note(line);
    const Device device = device_of(common);
    refuse_precision_without_gpu(device, settings_.precision);
    device.cuda ? note_slow_precision() : note_without_gpu(given, start);
    const Context context(common.threads, device);
    if (context.on_gpu() && !settings_.plans.empty()) {
      set_plans(context, GpuPlans::read(settings_.plans));
    }
    TrainRun(context, common, settings_, table_, std::move(start)).execute();
  }

 private:
  void take_recipe(const CommonOptions& common, const std::set<std::string>& given) {
    settings_.recipe = find_recipe(settings_.recipe);
    apply_settings(table_, read_recipe(settings_.recipe), settings_.recipe);
    if (!given.contains("threads")) check_recipes_threads(common.threads);
    for (const auto& [name, spec] :
         {std::pair{"data", &settings_.data}, std::pair{"test-data", &settings_.test_data}}) {
      if (given.contains(name)) continue;
      const char* own = std::string_view(name) == "test-data" && given.contains("data")
                            ? "--test-data '' takes --data's own held-out classes; "
                            : "";
      require_found(fmt::format("--{}", name), *spec, settings_.recipe, "train is called",
                    fmt::format("its comments may say where to get it; {}or ", own));
    }
  }

  // The checkpoint or the weights that the run begins with, and all settings.
  void find_start(const CommonOptions& common, RunStart& start) {
    ordered_json stored;
    if (!settings_.out.empty() && holds_checkpoint(settings_.out)) {
      stored = resume(common, start);
    } else if (!settings_.weights.empty()) {
      start_from_weights(common, start);
    }
    const bool auto_bn = settings_.bn == "auto";
    resolve(settings_);
    if (start.checkpoint) {
      keep_start(stored, auto_bn);
    } else if (settings_.resume == "auto") {
      note(fmt::format("{}: nothing to go on from; a new run begins there", settings_.out));
    }
    refuse_bytes_that_are_no_text();
    if (start.checkpoint) {
      start.changes = changed_settings(stored, table_.values(), *start.checkpoint);
    }
    start.open_batch = !table_.given("batch") && !start.checkpoint;
    start.open_chunk = !table_.given("batch") && !table_.given("chunk");
    // Early; TrainRun checks the shares of all processes, and an open batch once it is final.
    if (!start.open_batch) check_shares(settings_, 1, 0, false);
  }

  // Who has named none, in a recipe either, may not know that there are others.
  void note_slow_precision() const {
    if (table_.given("precision")) return;
    note(
        "--precision fp32 keeps off the GPU's matrix units; fp16 and bf16 take a fraction of the "
        "time (docs/gpu.md says what they keep)");
  }

  void note_without_gpu(const std::set<std::string>& given, const RunStart& start) const {
    const bool pictures = !read_data_spec(settings_.data).path.empty();
    const bool chosen =
        table_.given("arch") || !settings_.weights.empty() || start.checkpoint != nullptr;
    if (pictures && !chosen) {
      note(fmt::format(
          "{} on {} x {} pixels is slow without a GPU; --arch resnet18 or a smaller --image-size "
          "is faster",
          settings_.arch, settings_.image_size, settings_.image_size));
    }
    for (const char* name : {"plans", "graph"}) {
      if (given.contains(name)) note(fmt::format("--{}: has no effect without a GPU", name));
    }
  }

  void refuse_bytes_that_are_no_text() const {
    const ordered_json values = table_.values();
    for (const auto& [name, value] : values.items()) {
      try {
        value.dump();
      } catch (const ordered_json::type_error&) {
        fail<UsageError>(
            "--{} {}: is no UTF-8, as which a run keeps its settings; rename it, or give a link to "
            "it",
            name, value.get<std::string>());
      }
    }
  }

  void check_recipes_threads(int threads) const {
    try {
      check_threads(threads, fmt::format("{}: threads = {}", settings_.recipe, threads));
    } catch (const UsageError& error) {
      throw InputError(error.what());
    }
  }

  // Settings that matter only at the start of a run keep their original values.
  void keep_start(const ordered_json& stored, bool auto_bn) {
    for (const auto& [name, setting] : {std::pair{"weights", &settings_.weights},
                                        std::pair{"embedding-start", &settings_.embedding_start}}) {
      const auto before = stored.find(name);
      if (!table_.given(name) || before == stored.end() || !before->is_string()) continue;
      const auto at_start = before->get<std::string>();
      if (*setting == at_start) continue;
      note(fmt::format("--{}: has no effect on a run that goes on", name));
      *setting = at_start;
    }
    if (auto_bn) settings_.bn = automatic_bn(settings_);  // by the weights that it began with
  }

  std::vector<std::string> picture_folders() const {
    std::vector<std::string> folders;
    for (const std::string& spec : {settings_.data, settings_.test_data}) {
      if (!spec.empty() && spec != "none") folders.push_back(read_data_spec(spec).path);
    }
    return folders;
  }

  // Refuses a --json that would destroy something.
  void check_result(const CommonOptions& common) const {
    std::vector<std::string> inputs = picture_folders();
    inputs.insert(inputs.end(), {settings_.recipe, settings_.weights, settings_.plans});
    check_outputs(
        {{.flag = "--json", .path = common.json, .kind = FileKind::kJson, .made = makes_folder()}},
        inputs, common.force);
  }

  // Refuses outputs that would destroy something, and locks the run's folder.
  void take_folder(const CommonOptions& common, RunStart& start) const {
    check_result(common);
    const std::vector<std::string> pictures = picture_folders();
    if (!settings_.out.empty()) check_run_files(settings_.out, {{"--json", common.json}});
    // Checked before this run puts its lock into the folder.
    if (!settings_.out.empty() && !holds_checkpoint(settings_.out)) {
      check_run_folder(settings_.out, pictures, common.force);
    }
    // Lock before looking into the folder: another run may be about to save there.
    if (common.processes->first() && !settings_.out.empty()) {
      FileCalls calls;
      start.lock = std::make_unique<FolderLock>(settings_.out, calls);
    }
    common.processes->all_reduce_max(0);  // the other processes wait for the lock
  }

  // Loads the checkpoint and the settings of the run in the folder; returns the stored settings.
  ordered_json resume(const CommonOptions& common, RunStart& start) {
    if (settings_.resume != "auto") {
      fail<InputError>(
          "{}: holds a run already; --resume auto goes on with it, or give another --out",
          settings_.out);
    }
    Resumable found = find_resumable(settings_.out);
    if (common.processes->first()) {
      for (const std::string& skipped : found.skipped) tell("skipped: {}", skipped);
    }
    if (!common.quiet) {
      tell("going on from {}: {}", found.checkpoint->path(), place_of(found.checkpoint->run()));
    }
    start.last_damaged = found.last_damaged;
    start.checkpoint = std::move(found.checkpoint);
    ordered_json stored = stored_settings(*start.checkpoint);
    start.from_last = fs::path(start.checkpoint->path()).filename() == kLastFile;
    start.own_table = stored_text(stored, "log") == "csv";
    const bool data = table_.given("data"), test_data = table_.given("test-data");
    const bool threads = table_.given("threads");
    ordered_json taken = stored;
    // As with --weights: another size of picture has another short side.
    const auto size = stored.find("image-size");
    if (table_.given("image-size") && size != stored.end() && *size != settings_.image_size) {
      taken.erase("resize");
    }
    apply_settings(table_, taken, start.checkpoint->path());
    require_own_table(start, common);
    const std::string& origin = start.checkpoint->path();
    // Not refused: with fewer the run would no longer be equal to the last bit.
    if (!threads) {
      note_threads(common.threads, fmt::format("{}: threads = {}", origin, common.threads));
    }
    const std::string started = "that run was started";
    if (!data) require_found("--data", settings_.data, origin, started, "");
    if (!test_data) require_found("--test-data", settings_.test_data, origin, started, "");
    return stored;
  }

  // A metrics.csv that is no run's is somebody else's.
  void require_own_table(const RunStart& start, const CommonOptions& common) const {
    const fs::path table = fs::path(settings_.out) / kTableFile;
    std::error_code ignored;
    if (settings_.log != "csv" || start.own_table || common.force) return;
    if (!common.processes->first() || !fs::exists(table, ignored)) return;
    // The checkpoint may be older than the first --log csv.
    std::ifstream file(table);
    std::string columns;
    std::getline(file, columns);
    if (columns.starts_with(kFirstColumns)) return;
    fail<InputError>(
        "{}: is not of this run, which would put its own in its place; rename it, or give --force",
        table.string());
  }

  void start_from_weights(const CommonOptions& common, RunStart& start) {
    std::vector<std::string> said;
    start.weights = std::make_unique<Checkpoint>(
        open_weights(settings_.weights, table_.given("arch") ? settings_.arch : "", said));
    for (const std::string& line : said) note(fmt::format("{}: {}", settings_.weights, line));
    const std::string taken = adopt_model(table_, settings_, *start.weights);
    if (!taken.empty() && !common.quiet) tell("as {} has it: {}", settings_.weights, taken);
    const auto embedding = start.weights->weight_dims("embedding.weight");
    if (table_.given("embedding-start") && embedding && embedding->front() == settings_.dim) {
      note(fmt::format("--embedding-start: has no effect, {} has an embedding layer of {}",
                       settings_.weights, settings_.dim));
    }
    note_other_exif(training_exif(*start.weights), read_data_spec(settings_.data));
  }

  TrainSettings settings_;
  SettingTable table_;
};

}  // namespace

std::unique_ptr<Command> make_train() { return std::make_unique<Train>(); }

}  // namespace rk
