// Every flag of `train` must change the settings that it should, and no others.
#include "tools/train/settings/train_settings.h"

#include "data/sources/open_dataset.h"
#include "data/spec.h"
#include "engine/base/error.h"
#include "tests/support/heard_notes.h"
#include "tests/support/messages.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/words.h"
#include "tools/train/settings/train_flags.h"
#include "tools/train/settings/train_options.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <set>

namespace rk {
namespace {

using nlohmann::json;

struct Parsed {
  explicit Parsed(const std::vector<std::string>& words) {
    add_train_options(flags, table, settings);
    flags.parse(words);
    refuse_conflicts(table, settings);
    resolve(settings);
  }
  Flags flags;
  TrainSettings settings;
  SettingTable table;
};

const std::vector<std::string> kLeast = {"--data", "glyphs", "--out", "runs/first"};
constexpr std::uint64_t kSeed = 7;
constexpr std::int64_t kSteps = 100, kClasses = 40;  // steps an epoch, classes of the data

// All options that are passed to the parts of a run, by name.
json parts_of(const TrainSettings& s) {
  const TrainerOptions t = trainer_options(s, kSeed, kSteps, kClasses);
  const LoaderOptions l = loader_options(s, kSeed);
  const EmbedOptions e = embed_options(s);
  const ModelDescription& m = t.model;
  const AugmentOptions a = augment_options(s);
  return {{"data", s.data},
          {"test_data", s.test_data},
          {"out", s.out},
          {"recipe", s.recipe},
          {"resume", s.resume},
          {"allow_changed_data", s.allow_changed_data},
          {"weights", s.weights},
          {"plans", s.plans},
          {"epochs", s.epochs},
          {"batches", s.batches},
          {"eval_batch", s.eval_batch},
          {"save_every", s.save_every},
          {"eval_train", s.eval_train},
          {"monitor", s.monitor},
          {"patience", s.patience},
          {"log", s.log},
          {"sampler", sampler_spec(s)},
          {"model.arch", m.arch},
          {"model.pool", m.pool},
          {"model.gem_p", m.gem_p},
          {"model.dim", m.dim},
          {"model.stride_in_1x1", m.stride_in_1x1},
          {"model.input_mean", m.input_mean},
          {"model.input_std", m.input_std},
          {"model.resize", m.resize},
          {"model.stretch", m.stretch},
          {"model.crop", m.crop},
          {"augment", augment_text(a)},
          {"augment.size", a.size},
          {"augment.resize", a.resize},
          {"augment.stretch", a.stretch},
          {"trainer.frozen", t.batchnorm == BatchNormMode::kRunning},
          {"trainer.kept", t.frozen},
          {"trainer.orthogonal", t.orthogonal_embedding},
          {"trainer.loss", t.loss.text()},
          {"trainer.optimizer", static_cast<int>(t.optimizer.kind)},
          {"trainer.beta1", t.optimizer.beta1},
          {"trainer.beta2", t.optimizer.beta2},
          {"trainer.momentum", t.optimizer.momentum},
          {"trainer.nesterov", t.optimizer.nesterov},
          {"trainer.weight_decay", t.learning.weight_decay},
          {"trainer.embedding_rate", t.learning.embedding_rate},
          {"trainer.proxy_rate", t.learning.proxy_rate},
          {"trainer.decays_norms", t.learning.decays_norms},
          {"trainer.clip_norm", t.optimizer.clip_norm},
          {"schedule", static_cast<int>(t.schedule.kind)},
          {"schedule.rate", t.schedule.rate},
          {"schedule.warmup", t.schedule.warmup},
          {"schedule.factor", t.schedule.factor},
          {"schedule.every", t.schedule.every},
          {"schedule.milestones", t.schedule.milestones},
          {"schedule.total", t.schedule.total},
          {"schedule.floor", t.schedule.floor},
          {"trainer.batch", t.batch},
          {"trainer.chunk", t.chunk},
          {"trainer.memory", t.memory_batches},
          {"trainer.classes", t.classes},
          {"trainer.seed", t.seed},
          {"trainer.precision", static_cast<int>(t.precision)},
          {"trainer.capture", t.capture},
          {"loader.workers", l.workers},
          {"loader.cache", l.cache_bytes},
          {"loader.max_bad", l.max_bad},
          {"loader.seed", l.seed},
          {"loader.end_epoch", l.end_epoch},
          {"evaluation.workers", e.workers},
          {"evaluation.skip_bad", e.skip_bad}};
}

struct Case {
  std::vector<std::string> flags;  // the first one is what the case is about
  json changes;                    // all changes that the flags make
};

const std::vector<Case>& cases() {
  static const std::string kAugment =
      augment_text(parse_augment("flip=0.25", center_crop(224, 256)));
  static const std::vector<Case> all = {
      {{"--data", "glyphs:classes=9"}, {{"data", read_data_spec("glyphs:classes=9").text()}}},
      {{"--test-data", "glyphs:classes=8"},
       {{"test_data", read_data_spec("glyphs:classes=8").text()}}},
      {{"--out", "elsewhere"}, {{"out", "elsewhere"}}},
      {{"--recipe", "r.toml"}, {{"recipe", "r.toml"}}},
      {{"--resume", "auto"}, {{"resume", "auto"}}},
      {{"--epochs", "3"}, {{"epochs", 3}, {"schedule.total", 3 * kSteps}, {"loader.end_epoch", 3}}},
      {{"--eval-batch", "17"}, {{"eval_batch", 17}}},
      {{"--save-every", "2.5"}, {{"save_every", 2.5}}},
      {{"--eval-train", "300"}, {{"eval_train", 300}}},
      {{"--monitor", "jsd"}, {{"monitor", "jsd"}}},
      {{"--patience", "4"}, {{"patience", 4}}},
      {{"--log", "csv"}, {{"log", "csv"}}},
      {{"--batch", "64"}, {{"trainer.batch", 64}}},
      {{"--per-class", "8"}, {{"sampler", "pk:k=8"}}},
      {{"--sampler", "random"}, {{"sampler", "random"}}},
      {{"--batches", "12"}, {{"batches", 12}}},
      {{"--image-size", "112"},
       {{"model.crop", 112},
        {"model.resize", 128},
        {"augment.size", 112},
        {"augment.resize", 128}}},
      {{"--resize", "300"}, {{"model.resize", 300}, {"augment.resize", 300}}},
      {{"--stretch"}, {{"model.stretch", true}, {"augment.stretch", true}}},
      {{"--input-mean", "0.5,0.25,0.125"}, {{"model.input_mean", {0.5, 0.25, 0.125}}}},
      {{"--input-std", "0.5"}, {{"model.input_std", {0.5, 0.5, 0.5}}}},
      {{"--augment", "flip=0.25"}, {{"augment", kAugment}}},
      {{"--workers", "5"}, {{"loader.workers", 5}, {"evaluation.workers", 5}}},
      {{"--cache", "3"}, {{"loader.cache", 3 << 20}}},
      {{"--max-bad", "4"}, {{"loader.max_bad", 4}, {"evaluation.skip_bad", true}}},
      {{"--arch", "resnet18"}, {{"model.arch", "resnet18"}}},
      {{"--weights", "/w.h5"}, {{"weights", "/w.h5"}, {"trainer.frozen", true}}},
      {{"--weights", "/w.h5", "--bn", "train"}, {{"weights", "/w.h5"}}},
      {{"--freeze", "layer1"}, {{"trainer.kept", {"conv1.", "bn1.", "layer1."}}}},
      {{"--allow-changed-data"}, {{"allow_changed_data", true}}},
      {{"--dim", "64"}, {{"model.dim", 64}}},
      {{"--pool", "gem"}, {{"model.pool", "gem"}}},
      {{"--gem-p", "4"}, {{"model.gem_p", 4}}},
      {{"--embedding-start", "orthogonal"}, {{"trainer.orthogonal", true}}},
      {{"--precision", "bf16"}, {{"trainer.precision", static_cast<int>(Precision::kBf16)}}},
      {{"--graph", "off"}, {{"trainer.capture", false}}},
      {{"--plans", "/p.txt"}, {{"plans", "/p.txt"}}},
      {{"--chunk", "32"}, {{"trainer.chunk", 32}}},
      {{"--bn", "frozen"}, {{"trainer.frozen", true}}},
      {{"--stride-in-1x1"}, {{"model.stride_in_1x1", true}}},
      {{"--loss", "fastap:bins=20"}, {{"trainer.loss", parse_loss("fastap:bins=20").text()}}},
      {{"--memory", "3"}, {{"trainer.memory", 3}}},
      {{"--optimizer", "adamw"}, {{"trainer.optimizer", static_cast<int>(OptimizerKind::kAdamW)}}},
      {{"--optimizer", "sgd"}, {{"trainer.optimizer", static_cast<int>(OptimizerKind::kSgd)}}},
      {{"--lr", "0.5"}, {{"schedule.rate", 0.5}}},
      {{"--embedding-rate", "3"}, {{"trainer.embedding_rate", 3}}},
      {{"--proxy-rate", "30"}, {{"trainer.proxy_rate", 30}}},
      {{"--weight-decay", "0.01"}, {{"trainer.weight_decay", 0.01}}},
      {{"--no-decay-norms"}, {{"trainer.decays_norms", false}}},
      {{"--clip-norm", "1.5"}, {{"trainer.clip_norm", 1.5}}},
      {{"--beta1", "0.8"}, {{"trainer.beta1", 0.8}}},
      {{"--beta2", "0.99"}, {{"trainer.beta2", 0.99}}},
      {{"--momentum", "0.5"}, {{"trainer.momentum", 0.5}}},
      {{"--nesterov", "--optimizer", "sgd"},
       {{"trainer.nesterov", true}, {"trainer.optimizer", static_cast<int>(OptimizerKind::kSgd)}}},
      {{"--schedule", "cosine"}, {{"schedule", static_cast<int>(ScheduleKind::kCosine)}}},
      {{"--schedule", "step", "--drop-every", "2.5"},
       {{"schedule", static_cast<int>(ScheduleKind::kStep)}, {"schedule.every", 250}}},
      {{"--schedule", "milestones", "--drop-at", "1.5,4"},
       {{"schedule", static_cast<int>(ScheduleKind::kMilestones)},
        {"schedule.milestones", {150, 400}}}},
      {{"--warmup", "0.5"}, {{"schedule.warmup", 50}}},
      {{"--drop-every", "3"}, {{"schedule.every", 300}}},
      {{"--drop-at", "2,3"}, {{"schedule.milestones", {200, 300}}}},
      {{"--drop-factor", "0.25"}, {{"schedule.factor", 0.25}}},
      {{"--lr-floor", "0.125"}, {{"schedule.floor", 0.125}}}};
  return all;
}

TEST(TrainSettings, EveryFlagChangesWhatItNamesAndNothingElse) {
  const json before = parts_of(Parsed(kLeast).settings);
  EXPECT_EQ(before["trainer.seed"], kSeed);
  EXPECT_EQ(before["loader.seed"], kSeed);
  EXPECT_EQ(before["trainer.classes"], kClasses);
  for (const Case& each : cases()) {
    std::vector<std::string> words = each.flags;
    for (std::size_t i = 0; i < kLeast.size(); i += 2) {
      if (kLeast[i] != each.flags[0]) words.insert(words.end(), {kLeast[i], kLeast[i + 1]});
    }
    json expected = before;
    expected.update(each.changes);
    const json got = parts_of(Parsed(words).settings);
    EXPECT_EQ(got, expected) << each.flags[0] << ": " << json::diff(expected, got).dump(1);
    EXPECT_NE(got, before) << each.flags[0];
  }
}

TEST(TrainSettings, FlagsTakeTheirWholeRangesAndNoMore) {
  struct Range {
    std::string flag;
    std::vector<std::string> inside, outside;
  };
  const std::vector<Range> ranges = {
      {"batch", {"2", "1048576"}, {"1", "1048577"}},
      {"per-class", {"2", "1048576"}, {"1", "1048577"}},
      {"batches", {"0"}, {"-1"}},
      {"image-size", {"0", "8", "4096"}, {"-1", "1", "7", "4097"}},
      {"input-std", {"0.5"}, {"0"}},
      {"workers", {"0", "256"}, {"-1", "257"}},
      {"cache", {"0"}, {"-1"}},
      {"max-bad", {"-1", "0", "7"}, {"-2"}},
      {"dim", {"1"}, {"0"}},
      {"pool", {"avg", "max", "gem"}, {"sum"}},
      {"embedding-start", {"uniform", "orthogonal"}, {"normal"}},
      {"precision", {"fp32", "tf32", "bf16", "fp16"}, {"fp64"}},
      {"graph", {"on", "off"}, {"auto"}},
      {"chunk", {"0", "1"}, {"-1"}},
      {"bn", {"auto", "frozen", "train"}, {"eval"}},
      {"memory", {"0", "65536"}, {"-1", "65537"}},
      {"optimizer", {"adam", "adamw", "sgd"}, {"lamb"}},
      {"lr", {"1e-9"}, {"0", "-1"}},
      {"embedding-rate", {"0"}, {"-1"}},
      {"proxy-rate", {"0"}, {"-1"}},
      {"weight-decay", {"0"}, {"-1"}},
      {"clip-norm", {"0"}, {"-1"}},
      {"beta1", {"0"}, {"-0.1", "1.1"}},
      {"beta2", {"0"}, {"-0.1", "1.1"}},
      {"momentum", {"0"}, {"-0.1", "1.1"}},
      {"schedule", {"constant", "step", "milestones", "cosine"}, {"linear"}},
      {"warmup", {"0"}, {"-1"}},
      {"drop-factor", {"0.1", "2"}, {"0"}},
      {"lr-floor", {"0", "1"}, {"-0.1", "1.1"}},
      {"resume", {"never", "auto"}, {"always"}},
      {"epochs", {"0", "1"}, {"-1"}},
      {"eval-batch", {"1", "65536"}, {"0", "65537"}},
      {"eval-train", {"-1", "0"}, {"-2"}},
      {"monitor",
       {"map_at_r", "recall_at_1", "r_precision", "map", "roc_auc", "jsd"},
       {"recall_at_2"}},
      {"patience", {"0"}, {"-1"}},
      {"log", {"none", "csv"}, {"json"}},
      {"save-every", {"0", "0.5"}, {"-1"}}};
  const auto problem = [](const std::string& flag, const std::string& value) {
    Flags flags;
    TrainSettings settings;
    SettingTable table;
    add_train_options(flags, table, settings);
    const std::vector<std::string> words = joined(kLeast, {"--" + flag, value});
    return message_if_any<UsageError>([&] { flags.parse(words); });
  };
  for (const Range& range : ranges) {
    for (const std::string& value : range.inside) EXPECT_EQ(problem(range.flag, value), "");
    for (const std::string& value : range.outside) {
      EXPECT_TRUE(holds(problem(range.flag, value), "--" + range.flag)) << range.flag << value;
    }
  }
}

TEST(TrainSettings, AMeanOfLevelsIsNoted) {
  for (const char* mean : {"0.5", "1", "0.485,120,0.406"}) {
    const HeardNotes notes;
    std::vector<std::string> words = kLeast;
    words.insert(words.end(), {"--input-mean", mean});
    const Parsed parsed(words);
    const std::string all = fmt::format("{}", fmt::join(notes.lines, " "));
    EXPECT_EQ(holds(all, "--input-mean 120: pixels are 0 to 1 here, not 0 to 255; 0.471 may be"),
              std::string_view(mean).find(',') != std::string_view::npos)
        << mean;
  }
}

TEST(TrainSettings, WhatHasNoEffectIsSaidOfWhatWasGiven) {
  using Lines = std::vector<std::string>;
  const auto lines = [](const std::vector<std::string>& more, const std::set<std::string>& given) {
    std::vector<std::string> words = kLeast;
    words.insert(words.end(), more.begin(), more.end());
    return without_effect(given, Parsed(words).settings);
  };
  const std::string soft = "triplet_bh:soft=1,margin=0.2";
  EXPECT_EQ(lines({"--loss", soft}, {"loss"}),
            Lines({"--loss triplet_bh:margin=0.2,squared=0,soft=1: margin: has no effect with "
                   "soft=1"}));
  EXPECT_EQ(lines({"--loss", soft}, {}), Lines());  // a recipe's, or a resumed run's
  const Lines plain = lines({"--optimizer", "adamw"}, {"optimizer"});
  ASSERT_EQ(plain.size(), 1U);
  EXPECT_TRUE(plain[0].starts_with("--optimizer adamw: is adam without --weight-decay"));
  EXPECT_EQ(lines({"--optimizer", "adamw", "--weight-decay", "0.01"}, {"optimizer"}), Lines());
  EXPECT_EQ(lines({"--momentum", "0.5"}, {"momentum"}),
            Lines({"--momentum: has no effect without --optimizer sgd"}));
}

TEST(TrainSettings, NoFlagIsLeftOut) {
  std::set<std::string> shown;
  for (const Case& each : cases()) {
    for (const std::string& word : each.flags) {
      if (word.starts_with("--")) shown.insert(word.substr(2));
    }
  }
  const Parsed parsed(kLeast);
  for (const std::string& name : parsed.flags.names()) {
    EXPECT_TRUE(name == "help" || shown.contains(name)) << name << " has no case above";
  }
}

TEST(TrainSettings, RatesAndEpochsThatCannotBeNameTheirFlags) {
  const auto refusal = [](const std::vector<std::string>& words) {
    return message_of<UsageError>([&] { const Parsed parsed(joined(words, kLeast)); });
  };
  for (const char* flag : {"--beta1", "--beta2", "--momentum"}) {
    EXPECT_EQ(refusal({flag, "1"}),
              fmt::format("{}: expected a number from 0 to below 1, got 1", flag));
  }
  EXPECT_EQ(refusal({"--schedule", "milestones", "--drop-at", "3,1"}),
            "--drop-at 3,1: the epochs must ascend; give 1,3");
}

// The path of a data set is made absolute, and written with its options into the run's settings.
TEST(TrainSettings, AFolderWhoseNameReadsAsAnOptionIsRefused) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "lr=3,wd=1");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path() / "lr=3,wd=1");
  const std::string said = message_of<UsageError>([] {
    Parsed parsed({"--data", "folder:photos,val_classes=0.2", "--out", "r"});
  });
  std::filesystem::current_path(before);
  EXPECT_TRUE(said.starts_with("folder:photos,val_classes=0.2: its absolute path ")) << said;
  EXPECT_TRUE(holds(said, "lr=3,wd=1/photos holds a comma and a ="));
}

TEST(TrainSettings, ImagesTooSmallForTheNetworkNameTheLeastSize) {
  const auto with = [](const char* arch, const char* size) {
    const std::vector<std::string> words = joined(kLeast, {"--arch", arch, "--image-size", size});
    return message_if_any<UsageError>([&] { const Parsed parsed(words); });
  };
  EXPECT_EQ(with("inception_v3", "74"), "--image-size 74: inception_v3 takes images of 75 or more");
  EXPECT_EQ(with("inception_v3", "75"), "");
  EXPECT_EQ(with("resnet20", "8"), "");
}

// Applying the settings that a run records must set the same again, for every flag.
TEST(TrainSettings, TheRecordOfARunSetsTheSame) {
  for (const Case& each : cases()) {
    std::vector<std::string> words = each.flags;
    for (std::size_t i = 0; i < kLeast.size(); i += 2) {
      if (kLeast[i] != each.flags[0]) words.insert(words.end(), {kLeast[i], kLeast[i + 1]});
    }
    Parsed given(words);
    Flags flags;
    TrainSettings settings;
    SettingTable table;
    add_train_options(flags, table, settings);
    flags.parse({});
    apply_settings(table, given.table.values(), "last.h5");
    // Not recorded: they say where the run lies and how this start began.
    settings.allow_changed_data = given.settings.allow_changed_data;
    settings.out = given.settings.out;
    settings.recipe = given.settings.recipe;
    settings.resume = given.settings.resume;
    resolve(settings);
    EXPECT_EQ(parts_of(settings), parts_of(given.settings)) << each.flags[0];
  }
}

}  // namespace
}  // namespace rk
