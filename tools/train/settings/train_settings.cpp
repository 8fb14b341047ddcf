#include "tools/train/settings/train_settings.h"

#include "data/images/augment.h"
#include "data/samplers/sampler.h"
#include "data/sources/open_dataset.h"
#include "data/spec.h"
#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/nearest.h"
#include "losses/registry.h"
#include "tools/cli/flags/colour_values.h"
#include "tools/cli/flags/image_size.h"
#include "tools/cli/flags/shell_word.h"
#include "tools/common/loss_notes.h"
#include "tools/train/settings/train_options.h"
#include "training/memory_fit.h"
#include "weights/architectures/registry.h"
#include "weights/run_folder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>
#include <system_error>
#include <utility>

namespace rk {
namespace {

// The values of --freeze: the network's stages, from the input on.
std::vector<std::string> stage_names(const std::string& arch) {
  std::vector<std::string> names = {"none"};
  for (const Stage& stage : network_stages(arch)) names.push_back(stage.name);
  return names;
}

// Absolute, so that a resumed run finds it from any folder; without "..", unless that would be
// another file, as behind a link.
std::string with_whole_path(const std::string& path) {
  namespace fs = std::filesystem;
  if (path.empty()) return path;
  std::error_code ignored;
  const fs::path whole = fs::absolute(path), plain = whole.lexically_normal();
  const bool neither = !fs::exists(whole, ignored) && !fs::exists(plain, ignored);
  return neither || fs::equivalent(whole, plain, ignored) ? plain.string() : whole.string();
}

std::string whole_data_spec(const std::string& text) {
  DataSpec spec = read_data_spec(text);
  spec.path = with_whole_path(spec.path);
  const std::string whole = spec.text();
  // Where the working directory's own name holds ",key=", the text would be read as another path.
  if (read_data_spec(whole).path != spec.path) {
    fail<UsageError>(
        "{}: its absolute path {} holds a comma and a =, as options do; start in, or give, a "
        "folder without, such as a link",
        text, spec.path);
  }
  return whole;
}

}  // namespace

void refuse_conflicts(const SettingTable& table, const TrainSettings& s) {
  if (!table.given("sampler") || !table.given("per-class")) return;
  const DataSpec sampler = parse_sampler(s.sampler);
  if (sampler.kind != "pk") {
    fail<UsageError>("--per-class {}: belongs to the sampler pk, not to {}; leave one out",
                     s.per_class, sampler.kind);
  }
  if (sampler.integer("k", s.per_class, 2, 1 << 20) != s.per_class) {
    fail<UsageError>("--per-class {} and --sampler {} disagree; leave one out", s.per_class,
                     s.sampler);
  }
}

std::vector<std::string> without_effect(const std::set<std::string>& given,
                                        const TrainSettings& s) {
  struct Rule {
    const char* name;
    bool effective;
    const char* needs;
  };
  const LossSpec loss = parse_loss(s.loss);
  const bool adam = s.optimizer != "sgd";
  const bool evaluated = s.test_data != "none";
  const char* held_out = "held-out classes (--test-data)";
  const Rule rules[] = {
      {"momentum", !adam, "--optimizer sgd"},
      {"beta1", adam, "--optimizer adam or adamw"},
      {"beta2", adam, "--optimizer adam or adamw"},
      {"drop-every", s.schedule == "step", "--schedule step"},
      {"drop-at", s.schedule == "milestones", "--schedule milestones"},
      {"drop-factor", s.schedule == "step" || s.schedule == "milestones",
       "--schedule step or milestones"},
      {"lr-floor", s.schedule == "cosine", "--schedule cosine"},
      {"eval-train", evaluated, held_out},
      {"monitor", evaluated, held_out},
      {"patience", evaluated, held_out},
      {"gem-p", s.pool == "gem", "--pool gem"},
      {"stride-in-1x1", s.arch == "resnet50", "--arch resnet50"},
      {"no-decay-norms", s.weight_decay > 0, "--weight-decay"},
      {"proxy-rate", loss.entry->kind == LossKind::kProxies, "a loss with proxies"}};
  std::vector<std::string> lines;
  if (given.contains("loss")) lines = loss_notes(loss, s.loss);
  for (const Rule& rule : rules) {
    if (rule.effective || !given.contains(rule.name)) continue;
    lines.push_back(fmt::format("--{}: has no effect without {}", rule.name, rule.needs));
  }
  if (given.contains("optimizer") && s.optimizer == "adamw" && s.weight_decay == 0) {
    lines.emplace_back(
        "--optimizer adamw: is adam without --weight-decay, which in PyTorch is 0.01 unless given");
  }
  const auto epochs = static_cast<double>(s.epochs);
  if (given.contains("warmup") && s.warmup > epochs) {
    lines.push_back(fmt::format("--warmup {}: longer than the run's {}: --lr is not reached",
                                s.warmup, counted(s.epochs, "epoch")));
  }
  if (given.contains("drop-at") && s.schedule == "milestones" && !s.drop_at.empty() &&
      std::ranges::min(s.drop_at) >= epochs) {
    lines.push_back(
        fmt::format("--drop-at {}: behind the run's last epoch, {}: the rate never drops",
                    fmt::join(s.drop_at, ","), s.epochs));
  }
  return lines;
}

void apply_settings(SettingTable& table, nlohmann::ordered_json values, const std::string& source) {
  if (table.given("per-class") && !table.given("sampler")) values.erase("sampler");
  table.apply(values, source);
}

std::string adopt_model(const SettingTable& table, TrainSettings& s, const Checkpoint& checkpoint) {
  const ModelDescription& model = checkpoint.model();
  std::vector<std::string> taken;
  const auto take = [&](const char* name, auto& setting, const auto& value) {
    if (table.given(name)) return;
    setting = static_cast<std::decay_t<decltype(setting)>>(value);
    taken.push_back(fmt::format("{} {}", name, value));
  };
  const auto colours = [&](const char* name, std::vector<double>& setting, const auto& values) {
    if (table.given(name)) return;
    setting.assign(values.begin(), values.end());
    taken.push_back(fmt::format("{} {:g}", name, fmt::join(setting, ",")));
  };
  take("arch", s.arch, model.arch);
  if (s.arch != model.arch) {
    fail<UsageError>("--arch {}: {} holds {}; leave --arch out, or begin without --weights", s.arch,
                     checkpoint.path(), with_article(model.arch));
  }
  if (model.stride_in_1x1) take("stride-in-1x1", s.stride_in_1x1, true);
  take("pool", s.pool, model.pool);
  if (s.pool == "gem" && model.pool == "gem") take("gem-p", s.gem_p, model.gem_p);
  if (model.dim > 0) take("dim", s.dim, model.dim);
  colours("input-mean", s.input_mean, model.input_mean);
  colours("input-std", s.input_std, model.input_std);
  take("image-size", s.image_size, model.crop);
  if (s.image_size == model.crop) take("resize", s.resize, model.resize);
  if (model.stretch) take("stretch", s.stretch, true);
  return fmt::format("{}", fmt::join(taken, ", "));
}

void check_values(const TrainSettings& s) {
  parse_sampler(s.sampler);
  const LossSpec loss = parse_loss(s.loss);
  if (loss.entry->kind == LossKind::kScores) {
    fail<UsageError>(
        "--loss {}: takes scores and targets, train has embeddings and labels; see probe",
        loss.entry->name);
  }
}

std::int64_t batch_step(const TrainSettings& s, int processes) {
  return s.sampler == "pk" ? std::lcm(s.per_class, std::int64_t{processes}) : processes;
}

void check_shares(const TrainSettings& s, int processes, std::int64_t classes, bool in_epoch) {
  if (s.batch % processes != 0) {
    const std::int64_t step = batch_step(s, processes);
    std::int64_t shared = (s.batch / step + 1) * step;
    if (s.sampler == "pk" && shared > classes * s.per_class) shared -= step;
    const std::int64_t fewer = largest_divisor(s.batch, processes);
    fail<UsageError>("--batch {}: cannot be shared equally by {} processes; {}", s.batch, processes,
                     in_epoch     ? fmt::format("start {} until the epoch is done", fewer)
                     : shared > 0 ? fmt::format("use {}", shared)
                                  : fmt::format("start {}", fewer));
  }
  const std::int64_t share = s.batch / processes;
  if (s.chunk > 0 && share % s.chunk != 0) {
    const std::string of_each =
        processes == 1 ? fmt::format("--batch {}", s.batch)
                       : fmt::format("the {} of --batch {} that each of {} processes has",
                                     counted(share, "image"), s.batch, processes);
    fail<UsageError>("--chunk {}: does not divide {}; use {}", s.chunk, of_each,
                     largest_divisor(share, s.chunk));
  }
}

std::string automatic_bn(const TrainSettings& s) { return s.weights.empty() ? "train" : "frozen"; }

void resolve(TrainSettings& s) {
  if (s.data.empty()) {
    if (s.resume == "auto" && !s.out.empty()) {
      const std::string recipe = (std::filesystem::path(s.out) / kSettingsFile).string();
      std::error_code ignored;
      fail<UsageError>(
          "--data is missing, and {} holds no checkpoint to go on from; begin with all flags{}",
          s.out,
          std::filesystem::exists(recipe, ignored)
              ? fmt::format(", which --recipe {} has", shell_word(recipe))
              : "");
    }
    if (s.resume == "auto") {
      fail<UsageError>("--out is missing; give the folder of the run that is to go on");
    }
    fail<UsageError>(
        "--data is missing; for example --data folder:photos,val_classes=0.2 or --data "
        "glyphs");
  }
  if (s.out.empty()) fail<UsageError>("--out is missing; for example --out runs/first");
  check_values(s);
  const std::vector<std::string> stages = stage_names(s.arch);
  if (std::ranges::find(stages, s.freeze) == stages.end()) {
    fail<UsageError>("--freeze {}: {} has no such stage; {}", s.freeze, s.arch,
                     suggestion(s.freeze, stages));
  }
  if (s.bn == "auto") s.bn = automatic_bn(s);
  if (s.image_size == 0) s.image_size = static_cast<int>(native_image_size(s.arch));
  check_network_takes(s.arch, s.image_size);
  if (s.resize == 0) s.resize = static_cast<int>(default_resize(s.image_size));
  check_resize(s.resize, s.image_size);
  give_each_colour("--input-mean", s.input_mean);
  note_mean_of_levels(std::ranges::max(s.input_mean));
  give_each_colour("--input-std", s.input_std);
  if (s.schedule == "step" && s.drop_every <= 0) {
    fail<UsageError>("--schedule step: --drop-every is missing; for example --drop-every 10");
  }
  if (!std::is_sorted(s.drop_at.begin(), s.drop_at.end())) {
    std::vector<double> ascending = s.drop_at;
    std::sort(ascending.begin(), ascending.end());
    fail<UsageError>("--drop-at {}: the epochs must ascend; give {}", fmt::join(s.drop_at, ","),
                     fmt::join(ascending, ","));
  }
  if (s.schedule == "milestones" && s.drop_at.empty()) {
    fail<UsageError>("--schedule milestones: --drop-at is missing; for example --drop-at 20,40");
  }
  if (s.nesterov && (s.optimizer != "sgd" || s.momentum == 0)) {
    fail<UsageError>("--nesterov belongs to --optimizer sgd with a --momentum; leave it out");
  }
  s.data = whole_data_spec(s.data);
  if (!s.test_data.empty() && s.test_data != "none") s.test_data = whole_data_spec(s.test_data);
  s.weights = with_whole_path(s.weights);
  s.plans = with_whole_path(s.plans);
  const DataSpec sampler = parse_sampler(s.sampler);
  if (sampler.kind == "pk") {
    s.per_class = sampler.integer("k", s.per_class, 2, 1 << 20);
    s.sampler = "pk";
  }
  const LossSpec loss = parse_loss(s.loss);
  if (s.memory > 0 && !takes_memory(loss.entry->kind)) {
    fail<UsageError>("--memory {}: {} compares with its proxies and takes no memory; leave it out",
                     s.memory, loss.entry->name);
  }
  s.loss = loss.text();
  s.augment = augment_text(augment_options(s));
}

}  // namespace rk
