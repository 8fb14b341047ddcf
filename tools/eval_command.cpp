#include "tools/eval_command.h"

#include "data/dataset.h"
#include "engine/error.h"
#include "engine/note.h"
#include "layers/resnet.h"
#include "retrieval/embeddings_file.h"
#include "retrieval/evaluate.h"
#include "tools/embed.h"
#include "tools/gpu.h"
#include "tools/image_check.h"
#include "tools/json_file.h"
#include "tools/messages.h"
#include "tools/metrics_report.h"
#include "tools/output_files.h"
#include "tools/progress.h"
#include "tools/row_lengths.h"
#include "tools/signals.h"
#include "weights/foreign/resnet_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <set>

namespace rk {
namespace {

std::int64_t count_classes(const EmbeddingSet& set) {
  return static_cast<std::int64_t>(
      std::set<std::int64_t>(set.labels.begin(), set.labels.end()).size());
}

// Of the classes that occur in one set, how many do in the other.
std::int64_t count_shared(const EmbeddingSet& a, const EmbeddingSet& b) {
  const std::set<std::int64_t> first(a.labels.begin(), a.labels.end());
  const std::set<std::int64_t> second(b.labels.begin(), b.labels.end());
  return std::count_if(second.begin(), second.end(),
                       [&](std::int64_t label) { return first.contains(label); });
}

std::string plural(std::int64_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

// "folder:photos, split test: 352 images of 44 classes in 3 categories"
std::string data_text(const DataSpec& spec, const Dataset& data) {
  std::string text = fmt::format(
      "{}, {}: {} of {}", spec.text(), data.part(), plural(data.size(), "image", "images"),
      plural(static_cast<std::int64_t>(data.classes().size()), "class", "classes"));
  if (!data.categories().empty()) {
    text += " in " +
            plural(static_cast<std::int64_t>(data.categories().size()), "category", "categories");
  }
  return text;
}

class Eval final : public Command {
 public:
  void add_options(CLI::App& app) override {
    app.add_option("--embeddings", embeddings_, "HDF5 file with /embeddings and /labels")
        ->type_name("FILE");
    auto* checkpoint = app.add_option("--checkpoint,--weights", checkpoint_,
                                      "embed --data with this network: RUN/best.h5, or weights in "
                                      "any file that convert reads, whose pooled features are "
                                      "then the embeddings")
                           ->type_name("FILE");
    app.add_option("--arch", arch_,
                   "of weights in a file of somebody else's; empty: as their shapes say")
        ->check(CLI::IsMember(network_names()))
        ->needs(checkpoint);
    app.add_option("--data", data_,
                   "images for --checkpoint, KIND:PATH[,key=value]\n" + dataset_help())
        ->type_name("SPEC")
        ->needs(checkpoint);
    app.add_option("--split", split_, "which of its splits: train, val, test, query or gallery")
        ->needs(checkpoint);
    app.add_option("--save-embeddings", save_, "also write the embeddings to this file")
        ->type_name("FILE")
        ->needs(checkpoint);
    app.add_option("--batch", batch_, "images at a time")
        ->check(CLI::Range(1, 1 << 16))
        ->needs(checkpoint);
    app.add_option("--precision", precision_, "of the network on a GPU: fp32, tf32, fp16 or bf16")
        ->check(CLI::IsMember({"fp32", "tf32", "fp16", "bf16"}))
        ->needs(checkpoint);
    app.add_option("--workers", workers_, "threads that read images")
        ->check(CLI::Range(1, 256))
        ->needs(checkpoint);
    app.add_flag("--skip-bad", skip_bad_,
                 "leave images that cannot be read out instead of stopping")
        ->needs(checkpoint);
    app.add_option("--gallery", gallery_,
                   "search in this file instead of among the embeddings themselves")
        ->type_name("FILE");
    app.add_option("--recall-at", recall_at_, "the k of R@k")->check(above_zero())->delimiter(',');
    app.add_flag("--per-query", per_query_, "add every query's values to the JSON");
  }

  // A network embeds on the CPU.
  bool runs_on_cuda() const override { return checkpoint_.empty(); }

  void run(const CommonOptions& common) override {
    if (embeddings_.empty() == checkpoint_.empty()) {
      fail<UsageError>("give either --embeddings FILE or --checkpoint FILE with --data SPEC");
    }
    check_outputs({{"--save-embeddings", save_, FileKind::kEmbeddings},
                   {"--json", common.json, FileKind::kJson}},
                  {embeddings_, checkpoint_, gallery_}, common.force);
    const bool on_gpu = device_of(common).cuda;
    if (!on_gpu && precision_ != "fp32") {
      fail<UsageError>(
          "--precision {}: needs a GPU, the CPU computes in fp32; use --precision fp32",
          precision_);
    }
    // Embedding runs on the context's device; ranking on a GPU has a stream of its own.
    const Context context(common.threads, checkpoint_.empty() ? Device{} : device_of(common));
    const EmbeddingSet queries =
        checkpoint_.empty() ? read_embeddings(embeddings_) : embed(context, common);
    const std::string name = checkpoint_.empty() ? embeddings_ : data_;
    const std::int64_t classes = count_classes(queries);
    std::optional<EmbeddingSet> gallery;
    if (!gallery_.empty()) {
      gallery = read_embeddings(gallery_);
      check_same_space(queries, name, *gallery, gallery_);
      match_classes(queries, *gallery);
    }
    nlohmann::json json = {{"classes", classes}};
    const std::string what = describe(queries, classes, gallery ? &*gallery : nullptr, json);
    EvaluateOptions options;
    options.recall_at = recall_at_;
    options.per_query = per_query_;
    options.interrupted = interrupted;
    const std::shared_ptr<const CudaContext> gpu = open_gpu(device_of(common));
    options.cuda = gpu.get();
    Progress progress("ranking", queries.count(), "queries", common.quiet);
    options.progress = [&](double done) {
      progress.update(static_cast<std::int64_t>(done * static_cast<double>(queries.count())));
    };

    const auto note_of = [](const EmbeddingSet& set, const std::string& file) {
      note_lengths(set.embeddings, set.dim, file,
                   "cosine similarity wants 1, and JSD counts scores within [-1, 1]");
    };
    note_of(queries, name);
    if (classes == 1 && (!gallery || count_classes(*gallery) == 1)) {
      note(fmt::format(
          "{}: all of it is one class, so that whatever is found is right and R@1 is 1", name));
    }
    if (gallery) note_of(*gallery, gallery_);
    const auto start = std::chrono::steady_clock::now();
    std::optional<EmbeddingView> gallery_view;
    if (gallery) gallery_view = gallery->view();
    const std::optional<Metrics> metrics = [&] {
      try {
        return evaluate(context, queries.view(), gallery_view ? &*gallery_view : nullptr, options);
      } catch (const InputError& error) {
        const std::string text = error.what();
        fail<InputError>("{}: {}", text.starts_with("gallery:") ? gallery_ : name, text);
      }
    }();
    progress.finish();
    if (!metrics) stop_if_interrupted();
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

    print("{}", metrics_table(what, *metrics));
    if (common.verbose) {
      print("\n{:.2f} s, {:.1f} MiB beside the embeddings, {:.0f} GFLOP in tiles{}\n", seconds,
            static_cast<double>(metrics->bytes_reserved) / (1 << 20),
            static_cast<double>(metrics->gemm_flops) * 1e-9,
            metrics->symmetric ? " (half of S = S^T)" : "");
    }
    if (common.json.empty()) return;
    json.update({{"embeddings", embeddings_},
                 {"checkpoint", checkpoint_},
                 {"data", data_},
                 {"split", checkpoint_.empty() ? "" : split_},
                 {"skipped_images", skipped_},
                 {"gallery", gallery_},
                 {"protocol", protocol_text(*metrics)},
                 {"metrics", metrics_json(*metrics)},
                 {"seconds", seconds},
                 {"bytes_reserved", metrics->bytes_reserved},
                 {"device", common.device},
                 {"threads", context.threads()},
                 {"version", RK_VERSION}});
    write_json(common.json, json);
  }

 private:
  // What is searched for in what, a line each; adds what is counted for it to `json`.
  std::string describe(const EmbeddingSet& queries, std::int64_t classes,
                       const EmbeddingSet* gallery, nlohmann::json& json) const {
    std::string text = checkpoint_.empty() ? fmt::format("{}: {} of {}", embeddings_,
                                                         plural(queries.count(), "row", "rows"),
                                                         plural(classes, "class", "classes"))
                                           : data_text_;
    if (trained_on_) {
      json["classes_trained_on"] = *trained_on_;
      text += fmt::format("; the network was trained on {} of these classes (by name)",
                          *trained_on_ == 0 ? "none" : std::to_string(*trained_on_));
    }
    if (gallery == nullptr) return text;
    const std::int64_t gallery_classes = count_classes(*gallery);
    const std::int64_t shared = count_shared(queries, *gallery);
    json["gallery_classes"] = gallery_classes;
    json["shared_classes"] = shared;
    json["classes_matched_by"] = gallery->classes.empty() ? "label" : "name";
    text += fmt::format("\nin {}: {} of {}, {} of the {} searched for among them (by {})", gallery_,
                        plural(gallery->count(), "row", "rows"),
                        plural(gallery_classes, "class", "classes"), shared, classes,
                        gallery->classes.empty() ? "label" : "name");
    std::error_code ignored;
    if (std::filesystem::equivalent(embeddings_, gallery_, ignored)) {
      note(
          fmt::format("{}: is both queries and gallery, so that every row finds itself; leave "
                      "--gallery out to search among the others",
                      gallery_));
    }
    return text;
  }

  // How many of the classes the network was trained on, where its checkpoint says.
  void compare_with_training(const CheckpointEmbedder& embedder, const EmbeddingSet& set) {
    if (embedder.trained_on().empty()) return;
    const std::set<std::string> known(embedder.trained_on().begin(), embedder.trained_on().end());
    trained_on_ = std::count_if(set.classes.begin(), set.classes.end(),
                                [&](const std::string& name) { return known.contains(name); });
    if (*trained_on_ == 0) return;
    note(
        fmt::format("{} of the {} classes of {} have the names of classes that the network was "
                    "trained on: on those it retrieves better than on new ones",
                    *trained_on_, set.classes.size(), data_));
  }

  // The pictures of a test are to be seen as those of training were.
  void note_other_exif(const CheckpointEmbedder& embedder, const DataSpec& spec) const {
    const std::string& before = embedder.training_exif();
    const std::string now = spec.get("exif", "ignore");
    if (before.empty() || spec.path.empty() || before == now) return;
    note(fmt::format("the network was trained on pictures with exif={}, {} has exif={}", before,
                     data_, now));
  }

  // With what to do about a picture that cannot be read.
  std::optional<EmbeddingSet> embed_all(CheckpointEmbedder& embedder, const Dataset& data,
                                        const EmbedOptions& options) const {
    try {
      return embedder.embed(data, options);
    } catch (const InputError& error) {
      const std::string text = error.what();
      for (std::int64_t i = 0; i < data.size(); ++i) {
        if (!text.starts_with(data.item_name(i) + ":")) continue;
        fail<InputError>("{}; --skip-bad leaves such images out, `probe --data {}` names all", text,
                         shell_word(data_));
      }
      throw;
    }
  }

  EmbeddingSet embed(const Context& context, const CommonOptions& common) {
    if (data_.empty()) fail<UsageError>("--checkpoint {}: --data is missing", checkpoint_);
    std::vector<std::string> said;
    const Checkpoint network = open_weights(checkpoint_, arch_, said);
    for (const std::string& line : said) note(fmt::format("{}: {}", checkpoint_, line));
    CheckpointEmbedder embedder(context, network, batch_, precision_of(precision_));
    const DataSpec spec = read_data_spec(data_);
    const Dataset data = open_dataset(spec, parse_split(split_));
    data_text_ = data_text(spec, data);
    if (!data.left_out().empty()) {
      note(fmt::format("{}: left out {}", data.name(), text_of(data.left_out())));
    }
    Progress progress("embedding", data.size(), "images", common.quiet);
    EmbedOptions options;
    options.workers = workers_;
    options.skip_bad = skip_bad_;
    options.progress = [&](std::int64_t done) { progress.update(done); };
    const std::optional<EmbeddingSet> set = embed_all(embedder, data, options);
    if (!set) stop_if_interrupted();
    progress.finish();
    skipped_ = static_cast<std::int64_t>(embedder.bad_images().size());
    // A smaller gallery changes every metric, so it is said even when little else is.
    if (skipped_ > 0) tell("left out: {} images that cannot be read", skipped_);
    note_lying(data);
    note_other_exif(embedder, spec);
    compare_with_training(embedder, *set);
    if (!save_.empty()) write_embeddings(save_, *set);
    return *set;
  }

  std::string embeddings_;
  std::string checkpoint_;
  std::string arch_;
  std::string data_;
  std::string split_ = "test";
  std::string save_;
  std::string precision_ = "fp32";
  std::int64_t batch_ = 64;
  int workers_ = 2;
  bool skip_bad_ = false;
  std::int64_t skipped_ = 0;
  std::string data_text_;
  std::optional<std::int64_t> trained_on_;
  std::string gallery_;
  std::vector<std::int64_t> recall_at_ = EvaluateOptions{}.recall_at;
  bool per_query_ = false;
};

}  // namespace

std::unique_ptr<Command> make_eval() { return std::make_unique<Eval>(); }

}  // namespace rk
