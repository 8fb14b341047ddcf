#include "tools/train/settings/train_settings.h"

#include "data/samplers/sampler.h"
#include "data/sources/open_dataset.h"
#include "data/spec.h"
#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/nearest.h"
#include "engine/device/precision.h"
#include "tools/cli/colour_values.h"
#include "tools/cli/image_size.h"
#include "training/memory_fit.h"
#include "weights/architectures/registry.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>
#include <utility>

namespace rk {
namespace {

// The problem in words; empty: none.
std::string image_size_problem(const std::string& text) {
  for (const FlagCheck& allowed : {in_range(0, 0), in_range(8, 4096)}) {
    if (allowed.problem(text).empty()) return "";
  }
  return fmt::format("{} is neither 0 nor 8 to 4096", text);
}

// The values of --freeze: the network's stages, from the input on.
std::vector<std::string> stage_names(const std::string& arch) {
  std::vector<std::string> names = {"none"};
  for (const Stage& stage : network_stages(arch)) names.push_back(stage.name);
  return names;
}

// The name prefixes of the parameters of all stages up to `last`.
std::vector<std::string> frozen_beginnings(const std::string& arch, const std::string& last) {
  std::vector<std::string> beginnings;
  if (last == "none") return beginnings;
  for (const Stage& stage : network_stages(arch)) {
    beginnings.insert(beginnings.end(), stage.beginnings.begin(), stage.beginnings.end());
    if (stage.name == last) break;
  }
  return beginnings;
}

// Absolute, so that a resumed run finds it from any folder.
std::string with_whole_path(const std::string& path) {
  return path.empty() ? path : std::filesystem::absolute(path).lexically_normal().string();
}

std::string whole_data_spec(const std::string& text) {
  DataSpec spec = read_data_spec(text);
  spec.path = with_whole_path(spec.path);
  return spec.text();
}

OptimizerKind optimizer_kind(const std::string& name) {
  if (name == "adam") return OptimizerKind::kAdam;
  return name == "adamw" ? OptimizerKind::kAdamW : OptimizerKind::kSgd;
}

ScheduleKind schedule_kind(const std::string& name) {
  if (name == "step") return ScheduleKind::kStep;
  if (name == "milestones") return ScheduleKind::kMilestones;
  return name == "cosine" ? ScheduleKind::kCosine : ScheduleKind::kConstant;
}

void add_data_options(SettingTable& t, TrainSettings& s) {
  t.group("Data: which images, and how they become batches");
  t.add("data", s.data, "training images, KIND:PATH[,key=value]\n" + dataset_help())
      .type_name("SPEC");
  t.add("test-data", s.test_data,
        "images of other classes to evaluate on each epoch; without it --data's own held-out "
        "classes "
        "(its split val or test, or a share of its classes: --data SPEC,val_classes=0.2); "
        "none: evaluate nothing")
      .type_name("SPEC");
  t.add("batch", s.batch, "images in a batch; ranking losses gain from more")
      .check(in_range(2, 1 << 20));
  t.add("per-class", s.per_class,
        "images of each class in a batch, so batch / this many classes (sampler pk)")
      .check(in_range(2, 1 << 20));
  t.add("sampler", s.sampler,
        "which images make a batch; each batch follows from seed, epoch and number alone:" +
            sampler_help())
      .type_name("SAMPLER")
      .check(shown_values(sampler_names()));
  t.add("batches", s.batches,
        "batches an epoch; 0: the sampler's own number, images / batch for most")
      .check(in_range(0, 1 << 30));
  t.add("image-size", s.image_size,
        "side of the square that the network sees; 0: what it was made for, 224, inception_v3 299, "
        "resnet20 32")
      .check({image_size_problem, "0 or 8 to 4096"});
  t.add("resize", s.resize,
        "short side before the centre (or random) crop of that square; 0: image-size * 256 / 224")
      .check(in_range(0, kMostSide));
  t.add(
       "input-mean", s.input_mean,
       "subtracted from pixels in 0..1: one number, or red,green,blue; the level of the background "
       "makes it 0, like the padding of the convolutions")
      .check({in_range(-kMostInput, kMostInput).problem})
      .delimiter(',');
  t.add("input-std", s.input_std, "what they are then divided by")
      .check({in_range(kLeastInputStd, kMostInput).problem})
      .delimiter(',');
  t.add(
      "augment", s.augment,
      "random changes to training images: none, or key=value,..., of which those that are not "
      "named "
      "are as follows (rotation=12 alone neither crops at random nor mirrors):\n"
      "crop=center, random (a window of the resized image) or resized (a window of random area and "
      "ratio, then resized);\n"
      "area_min=0.08,area_max=1 (0.001 to 1: share of the image) and ratio_min=0.75,"
      "ratio_max=1.3333333333333333 (0.01 to 100: width / height) of crop=resized;\n"
      "flip=0 (0 to 1: probability that left and right are swapped);\n"
      "affine=1 (0 to 1: probability of what follows), rotation=0 (to 180 degrees, either way), "
      "shear=0 (to 80 degrees, either way), zoom_min=1,zoom_max=1 (0.1 to 10: factor), translate=0 "
      "(to 1: share of the side, either way, on each axis);\n"
      "fill=border, white, black or 0 to 255: what is outside of the image then");
  t.add("workers", s.workers,
        "threads that read and prepare images; the result does not depend on it")
      .check(in_range(1, 256));
  t.add("cache", s.cache, "MiB of decoded images to keep").check(in_range(0, 1 << 30));
  t.add("max-bad", s.max_bad,
        "training images that may be unreadable: 0 stops at the first, -1 allows the larger of 10 "
        "and 0.1 %; others of their class take their place, and bad_files.txt names them. Unless "
        "0, the metrics leave out held-out images that cannot be read, however many. Where the "
        "system fails (no permission, a failing disk), training stops")
      .check(whole_number(-1));
}

void add_network_options(SettingTable& t, TrainSettings& s) {
  t.group("Network: backbone, pooling, embedding layer");
  t.add("arch", s.arch, "backbone").check(one_of(network_names()));
  t.add("weights", s.weights,
        "start from this checkpoint's weights, with its arch, stride-in-1x1, pool, gem-p, dim, "
        "input-mean, input-std, image-size and (for that image-size) resize where they are not "
        "given; empty: from random ones")
      .type_name("FILE");
  t.add("dim", s.dim, "numbers in an embedding").check(in_range(1, kMostDim));
  t.add("pool", s.pool, "global pooling of the last feature maps")
      .check(one_of({"avg", "max", "gem"}));
  t.add("gem-p", s.gem_p, "exponent of gem: 1 is avg; the larger, the nearer to max")
      .check(above_zero());
  t.add("embedding-start", s.embedding_start, "initialisation of the embedding layer")
      .check(one_of({"uniform", "orthogonal"}));
  t.add("precision", s.precision,
        "arithmetic of the network; all but fp32 need a GPU; losses are always fp32")
      .check(one_of(precision_names()));
  t.add("graph", s.graph,
        "on a GPU: capture the step as one CUDA graph and replay it (on), or launch its kernels "
        "one by one (off); the same bits")
      .check(one_of({"on", "off"}));
  t.add("plans", s.plans,
        "on a GPU: cuDNN's engine for each convolution, from `bench step --tune FILE`; empty: the "
        "first that cuDNN proposes")
      .type_name("FILE");
  t.add("chunk", s.chunk,
        "images in memory at a time: the batch is embedded in chunks, ranked as a whole, and "
        "back-propagated chunk by chunk, each computed twice; divides batch; 0: the whole batch, "
        "or, where neither this nor batch is given, what fits in memory. The same gradient, except "
        "that with --bn train the statistics are those of a chunk")
      .check(whole_number(0));
  t.add("freeze", s.freeze,
        "freeze the network up to and including this stage: none, stem, then layer1 to layer4 of a "
        "ResNet (resnet20: layer3), inception3 to inception5 of googlenet, or Mixed_5 to Mixed_7 "
        "of inception_v3. "
        "With --bn train their running statistics still change");
  t.add("bn", s.bn,
        "batch norm by the batch's statistics (train), or by the stored ones, which then stay as "
        "they are (frozen); auto: frozen with --weights, else train")
      .check(one_of({"auto", "frozen", "train"}));
  t.add_switch(
      "stride-in-1x1", s.stride_in_1x1,
      "resnet50 halves the image in a block's first 1x1, as the original paper, not in its 3x3");
}

void add_optimizer_options(SettingTable& t, TrainSettings& s) {
  t.group("Loss and optimizer: what is learnt, and in what steps");
  t.add("loss", s.loss, "NAME[:key=value,...]; probe --loss NAME --help explains one")
      .type_name("LOSS");
  t.add("memory", s.memory,
        "cross-batch memory: also rank against the embeddings of this many batches before, which "
        "take no gradient (not for losses with proxies)")
      .check(in_range(0, 1 << 16));
  t.add("optimizer", s.optimizer, "how gradients change parameters")
      .check(one_of({"adam", "adamw", "sgd"}));
  t.add("lr", s.lr, "learning rate").check(above_zero());
  t.add("embedding-rate", s.embedding_rate, "factor on the learning rate of the embedding layer")
      .check(at_least_zero());
  t.add("proxy-rate", s.proxy_rate,
        "nsl, proxy_anchor: factor on the learning rate of their class proxies")
      .check(at_least_zero());
  t.add("weight-decay", s.weight_decay,
        "L2 penalty on all parameters, proxies too; decoupled in adamw")
      .check(at_least_zero());
  t.add_switch("no-decay-norms", s.no_decay_norms,
               "no weight decay on biases and on batch norm's scale");
  t.add("clip-norm", s.clip_norm, "clip the gradient's norm over all parameters to this; 0: do not")
      .check(at_least_zero());
  t.add("beta1", s.beta1, "adam, adamw: decay of the first moment").check(in_range(0.0, 1.0));
  t.add("beta2", s.beta2, "adam, adamw: decay of the second moment").check(in_range(0.0, 1.0));
  t.add("momentum", s.momentum, "sgd").check(in_range(0.0, 1.0));
  t.add_switch("nesterov", s.nesterov, "sgd: look ahead by the momentum");

  t.group("Schedule: the learning rate over time, all in epochs (fractions allowed)");
  t.add("schedule", s.schedule,
        "step: times drop-factor every drop-every; milestones: at each drop-at; cosine: down to "
        "lr-floor at the last epoch")
      .check(one_of({"constant", "step", "milestones", "cosine"}));
  t.add("warmup", s.warmup, "linear rise of the rate from near zero").check(in_range(0.0, 1e9));
  t.add("drop-every", s.drop_every, "step").check(in_range(0.0, 1e9));
  t.add("drop-at", s.drop_at, "milestones, as 120,220").check(in_range(0.0, 1e9)).delimiter(',');
  t.add("drop-factor", s.drop_factor, "step, milestones").check(above_zero());
  t.add("lr-floor", s.lr_floor, "cosine: share of the rate left at the end")
      .check(in_range(0.0, 1.0));
}

}  // namespace

void add_train_options(Flags& flags, SettingTable& table, TrainSettings& settings) {
  table.attach(flags);
  const std::string run = "Run: how long, where to, and going on";
  flags
      .add("--out", settings.out,
           "folder of the run: settings.toml, run.json, metrics.jsonl, last.h5, best.h5")
      .type_name("FOLDER")
      .group(run);
  flags
      .add("--recipe", settings.recipe,
           "TOML file with any of these settings by name, or the name of one that comes along "
           "(omniglot); flags win over it")
      .type_name("FILE")
      .group(run);
  flags
      .add("--resume", settings.resume,
           "auto: go on from the newest valid checkpoint in --out, with its settings where none "
           "are given")
      .check(one_of({"never", "auto"}))
      .group(run);
  flags
      .add_switch("--allow-changed-data", settings.allow_changed_data,
                  "go on although the training images are no longer those that the run began with")
      .group(run);
  table.group(run);
  table.add("epochs", settings.epochs, "passes over the data").check(in_range(1, 1 << 30));
  table.add("eval-batch", settings.eval_batch, "images at a time in evaluation")
      .check(in_range(1, 1 << 16));
  table
      .add("eval-train", settings.eval_train,
           "each epoch also evaluate training classes, as many images as are held out but about "
           "this many at most: metrics that rise there and not on held-out classes show "
           "overfitting. Takes as long as evaluating as many held-out images; 0: none")
      .check(in_range(0, 1 << 30));
  table
      .add("monitor", settings.monitor,
           "metric of the held-out classes whose highest value chooses best.h5")
      .check(one_of({"map_at_r", "recall_at_1", "r_precision", "map", "roc_auc", "jsd"}));
  table
      .add("patience", settings.patience,
           "stop when this many epochs in a row have not raised the highest value of --monitor; 0: "
           "never")
      .check(in_range(0, 1 << 30));
  table
      .add("log", settings.log,
           "csv: also write metrics.csv, one line per epoch, for spreadsheets and plots; none: "
           "metrics.jsonl alone")
      .check(one_of({"none", "csv"}));
  table
      .add("save-every", settings.save_every,
           "minutes after which last.h5 is written in the middle of an epoch too; 0: only after "
           "epochs")
      .check(at_least_zero());
  add_data_options(table, settings);
  add_network_options(table, settings);
  add_optimizer_options(table, settings);
}

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
      {"proxy-rate", parse_loss(s.loss).entry->kind == LossKind::kProxies, "a loss with proxies"}};
  std::vector<std::string> lines;
  for (const Rule& rule : rules) {
    if (rule.effective || !given.contains(rule.name)) continue;
    lines.push_back(fmt::format("--{}: has no effect without {}", rule.name, rule.needs));
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

void check_shares(const TrainSettings& s, int processes, std::int64_t classes) {
  if (s.batch % processes != 0) {
    const std::int64_t step = batch_step(s, processes);
    std::int64_t shared = (s.batch / step + 1) * step;
    if (s.sampler == "pk" && shared > classes * s.per_class) shared -= step;
    fail<UsageError>("--batch {}: cannot be shared equally by {} processes; {}", s.batch, processes,
                     shared > 0 ? fmt::format("use {}", shared)
                                : fmt::format("start {}", largest_divisor(s.batch, processes)));
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
      fail<UsageError>(
          "--data is missing, and {} holds no checkpoint to go on from; begin with all flags",
          s.out);
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
  check_image_size(s.arch, s.image_size);
  if (s.resize == 0) s.resize = static_cast<int>(default_resize(s.image_size));
  if (s.resize < s.image_size) {
    fail<UsageError>("--resize {} leaves less than --image-size {}; give {} or more", s.resize,
                     s.image_size, s.image_size);
  }
  give_each_colour("--input-mean", s.input_mean);
  give_each_colour("--input-std", s.input_std);
  if (s.schedule == "step" && s.drop_every <= 0) {
    fail<UsageError>("--schedule step: --drop-every is missing; for example --drop-every 10");
  }
  for (const auto& [flag, value] : {std::pair{"--beta1", s.beta1}, std::pair{"--beta2", s.beta2},
                                    std::pair{"--momentum", s.momentum}}) {
    if (value >= 1) fail<UsageError>("{} {}: must be below 1; for example 0.9", flag, value);
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

std::string sampler_spec(const TrainSettings& s) {
  return s.sampler == "pk" ? fmt::format("pk:k={}", s.per_class) : s.sampler;
}

ModelDescription model_description(const TrainSettings& s) {
  ModelDescription model;
  model.arch = s.arch;
  model.pool = s.pool;
  model.gem_p = s.gem_p;
  model.dim = s.dim;
  model.stride_in_1x1 = s.stride_in_1x1;
  std::copy_n(s.input_mean.begin(), 3, model.input_mean.begin());
  std::copy_n(s.input_std.begin(), 3, model.input_std.begin());
  model.resize = s.resize;
  model.crop = s.image_size;
  model.upright = parse_data_spec(s.data).get("exif", "ignore") == "turn";
  return model;
}

AugmentOptions augment_options(const TrainSettings& s) {
  return parse_augment(s.augment, center_crop(s.image_size, s.resize));
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

EmbedOptions embed_options(const TrainSettings& settings) {
  EmbedOptions options;
  options.workers = settings.workers;
  options.skip_bad = settings.max_bad != 0;
  return options;
}

TrainerOptions trainer_options(const TrainSettings& s, std::uint64_t seed, std::int64_t steps,
                               std::int64_t classes) {
  const auto in_steps = [&](double epochs) {
    return static_cast<std::int64_t>(std::llround(epochs * static_cast<double>(steps)));
  };
  TrainerOptions options;
  options.model = model_description(s);
  options.batchnorm = s.bn == "frozen" ? BatchNormMode::kRunning : BatchNormMode::kBatch;
  options.orthogonal_embedding = s.embedding_start == "orthogonal";
  options.loss = parse_loss(s.loss);
  options.optimizer.kind = optimizer_kind(s.optimizer);
  options.optimizer.beta1 = s.beta1;
  options.optimizer.beta2 = s.beta2;
  options.optimizer.momentum = s.momentum;
  options.optimizer.nesterov = s.nesterov;
  options.optimizer.clip_norm = s.clip_norm;
  options.learning.weight_decay = s.weight_decay;
  options.learning.decays_norms = !s.no_decay_norms;
  options.learning.embedding_rate = s.embedding_rate;
  options.frozen = frozen_beginnings(s.arch, s.freeze);
  options.learning.proxy_rate = s.proxy_rate;
  options.schedule.kind = schedule_kind(s.schedule);
  options.schedule.rate = s.lr;
  options.schedule.warmup = in_steps(s.warmup);
  options.schedule.factor = s.drop_factor;
  options.schedule.every = in_steps(s.drop_every);
  for (const double epoch : s.drop_at) options.schedule.milestones.push_back(in_steps(epoch));
  options.schedule.total = in_steps(static_cast<double>(s.epochs));
  options.schedule.floor = s.lr_floor;
  options.batch = s.batch;
  options.chunk = s.chunk;
  options.memory_batches = s.memory;
  options.classes = classes;
  options.seed = seed;
  options.precision = precision_of(s.precision);
  options.capture = s.graph == "on";
  return options;
}

}  // namespace rk
