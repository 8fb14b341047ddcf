#include "tools/train/settings/train_flags.h"

#include "data/samplers/sampler.h"
#include "data/sources/open_dataset.h"
#include "engine/base/random_stream.h"
#include "engine/device/precision.h"
#include "tools/cli/flags/colour_values.h"
#include "tools/cli/flags/image_size.h"
#include "weights/architectures/registry.h"

#include <fmt/format.h>

#include <string>

namespace rk {
namespace {

// The problem in words; empty: none.
std::string image_size_problem(const std::string& text) {
  for (const FlagCheck& allowed : {in_range(0, 0), in_range(8, 4096)}) {
    if (allowed.problem(text).empty()) return "";
  }
  return fmt::format("{} is neither 0 nor 8 to 4096", text);
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
  t.add_switch(
      "stretch", s.stretch,
      "resize to a square of that side, whatever a picture's shape, instead of to a short "
      "side: as FastAP and PNP do, with 256 (--stretch=false: not, though the weights are of "
      "such a network)");
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
        "threads that read and prepare images; 0: one for each processor, at most 32; the result "
        "does not depend on it")
      .check(in_range(0, 256));
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
  t.add(
       "weights", s.weights,
       "start from these weights (a checkpoint, or any file that convert reads), with its arch, "
       "stride-in-1x1, pool, gem-p, dim, "
       "input-mean, input-std, image-size, stretch and (for that image-size) resize where they are "
       "not given; empty: from random ones (convolutions of any arch: Kaiming's normal "
       "distribution by "
       "fan-out; the embedding layer as PyTorch's Linear)")
      .type_name("FILE");
  t.add("dim", s.dim, "numbers in an embedding").check(in_range(1, kMostDim));
  t.add("pool", s.pool, "global pooling of the last feature maps")
      .check(one_of({"avg", "max", "gem"}));
  t.add("gem-p", s.gem_p, "exponent of gem: 1 is avg; the larger, the nearer to max")
      .check(in_range(kLeastGemP, kMostGemP));
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
        "back-propagated chunk by chunk, all but the last computed twice; divides batch; 0: the "
        "whole batch, "
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
  t.add("lr", s.lr,
        "learning rate: the default suits trained weights and adam; from random weights about 1e-3 "
        "learns faster, and sgd takes larger ones")
      .check(above_zero());
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
  t.add("beta1", s.beta1, "adam, adamw: decay of the first moment").check(zero_to_below_one());
  t.add("beta2", s.beta2, "adam, adamw: decay of the second moment").check(zero_to_below_one());
  t.add("momentum", s.momentum, "sgd").check(zero_to_below_one());
  t.add_switch("nesterov", s.nesterov, "sgd: look ahead by the momentum");

  t.group("Schedule: the learning rate over time, all in epochs (fractions allowed)");
  t.add("schedule", s.schedule,
        "step: times drop-factor every drop-every; milestones: at each drop-at; cosine: down to "
        "lr-floor at the end")
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
  table
      .add("epochs", settings.epochs,
           "passes over the data, as the sampler cuts it into batches; 0: only evaluate what "
           "training would begin with, and save it as last.h5, from which --resume auto goes on")
      .check(in_range(0, kMostEpochs));
  table.add("eval-batch", settings.eval_batch, "images at a time in evaluation")
      .check(in_range(1, 1 << 16));
  table
      .add("eval-train", settings.eval_train,
           "each epoch also evaluate training classes, as many images as are held out but about "
           "this many at most: metrics that rise there and not on held-out classes show "
           "overfitting. Takes as long as evaluating as many held-out images; 0: none; -1: all")
      .check(in_range(-1, 1 << 30));
  table
      .add("monitor", settings.monitor,
           "metric of the held-out classes whose highest value chooses best.h5")
      .check(one_of({"map_at_r", "recall_at_1", "r_precision", "map", "roc_auc", "jsd"}));
  table
      .add(
          "patience", settings.patience,
          "stop when this many epochs in a row have not raised the highest value of --monitor that "
          "an epoch reached (what training began with does not count); 0: never")
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

}  // namespace rk
