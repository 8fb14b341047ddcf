#include "tools/eval/inputs/embed_data.h"

#include "data/sources/known_classes.h"
#include "data/sources/open_dataset.h"
#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/system/signals.h"
#include "retrieval/files/embeddings_file.h"
#include "tools/cli/flags/shell_word.h"
#include "tools/cli/messages.h"
#include "tools/cli/progress.h"
#include "tools/common/image_check.h"
#include "training/embed.h"
#include "training/training_exif.h"
#include "weights/foreign/weight_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

namespace rk {
namespace {

// Adds what the checkpoint says it has seen of the data: in training, and to choose its epoch.
void add_provenance(const CheckpointEmbedder& embedder, const Dataset& data,
                    const std::string& checkpoint, DescribedRows& rows) {
  const auto all = std::ssize(data.classes());
  if (!embedder.trained_on().empty()) {
    const std::int64_t count = KnownClasses(embedder.trained_on()).count(data);
    rows.facts["classes_trained_on"] = count;
    rows.provenance = fmt::format("the network was trained on {} of these classes (by name)",
                                  count == 0 ? "none" : std::to_string(count));
    if (count > 0) {
      rows.notes.push_back(fmt::format(
          "{} of the {} of {} {} what {} was trained on, by name: on that it retrieves better "
          "than on what is new",
          count, counted(all, "class"), rows.name, count == 1 ? "is" : "are", checkpoint));
    }
  }
  if (const std::int64_t count = KnownClasses(embedder.chosen_on()).count(data); count > 0) {
    const std::string some = count == all ? "" : fmt::format("{} of ", count);
    rows.facts["chose_the_epoch"] = true;
    rows.provenance += fmt::format("{}its epoch was chosen on {}these classes",
                                   rows.provenance.empty() ? "" : "; ", some);
    rows.notes.push_back(fmt::format(
        "{}: on {}these {}, by name, the epoch of {} was chosen as the best, which flatters its "
        "figures; classes that chose nothing tell more",
        rows.name, some, counted(all, "class"), checkpoint));
  }
  for (const std::string& text : rows.notes) note(text);
}

std::optional<EmbeddingSet> embed_all(CheckpointEmbedder& embedder, const Dataset& data,
                                      const EmbedOptions& options, const std::string& spec) {
  try {
    return embedder.embed(data, options);
  } catch (const UnreadableImage& error) {
    const std::string all =
        spec.empty() ? "" : fmt::format(", `probe --data {}` names all", shell_word(spec));
    fail<InputError>("{}; --skip-bad leaves such images out{}", error.what(), all);
  }
}

void refuse_infinite(const EmbeddingSet& set, const std::string& checkpoint) {
  if (set.finite()) return;
  fail<InputError>(
      "{}: embeds pictures as not-a-number or infinity; its weights are no network's, use another",
      checkpoint);
}

// The item of each row: all items in order, except those that were left out.
std::vector<std::int64_t> items_of(const EmbeddingSet& set, const Dataset& data) {
  std::vector<std::int64_t> items;
  for (std::int64_t i = 0; i < data.size() && items.size() < set.paths.size(); ++i) {
    if (data.item_name(i) == set.paths[items.size()]) items.push_back(i);
  }
  return items;
}

}  // namespace

Checkpoint open_network(const NetworkOptions& options) {
  std::vector<std::string> said;
  Checkpoint network = open_weights(options.checkpoint, options.arch, said);
  check_network(network.model(), options.checkpoint);
  for (const std::string& line : said) note(fmt::format("{}: {}", options.checkpoint, line));
  return network;
}

EmbeddingSet embed_pictures(CheckpointEmbedder& embedder, const Dataset& data,
                            const NetworkOptions& options, const CommonOptions& common) {
  Progress progress("embedding", data.size(), "images", common.quiet);
  EmbedOptions embedding;
  embedding.workers = options.workers;
  embedding.skip_bad = options.skip_bad;
  embedding.progress = [&](std::int64_t done) { progress.update(done); };
  std::optional<EmbeddingSet> set = embed_all(embedder, data, embedding, options.data);
  if (!set) stop_if_interrupted();
  progress.finish();
  refuse_infinite(*set, options.checkpoint);
  // A smaller gallery changes every metric, so this is printed even with --quiet.
  constexpr std::size_t kNamed = 10;
  const std::vector<BadImage>& skipped = embedder.bad_images();
  for (std::size_t i = 0; i < std::min(skipped.size(), kNamed); ++i) {
    tell("left out: {}", skipped[i].reason);
  }
  if (skipped.size() > kNamed) {
    tell("left out: {} more that cannot be read", counted(skipped.size() - kNamed, "image"));
  }
  return std::move(*set);
}

DescribedRows embed_data(const Context& context, const NetworkOptions& options,
                         const DescribedRows* gallery, const CommonOptions& common) {
  if (options.data.empty()) {
    fail<UsageError>("--checkpoint {}: --data is missing; for example --data folder:photos",
                     options.checkpoint);
  }
  std::optional<Checkpoint> network = open_network(options);
  const std::string exif = training_exif(*network);
  const DataSpec spec = with_training_exif(read_data_spec(options.data), exif);
  const auto split = parse_split(options.split);
  const Dataset data = open_dataset(spec, split);
  CheckpointEmbedder embedder(context, *network, batch_of(options.batch, data.size()),
                              precision_of(options.precision));
  network.reset();  // as large as the embedder's parameters
  if (gallery != nullptr) {
    const EmbeddingSet none = embedder.no_rows(data);
    check_same_space(none, options.data, gallery->set, gallery->name);
    check_same_labels(none, options.data, gallery->set, gallery->labels_in);
  }
  if (!data.left_out().empty()) {
    note(fmt::format("{}: left out {}", data.name(), text_of(data.left_out())));
  }
  DescribedRows rows;
  rows.set = embed_pictures(embedder, data, options, common);
  if (!spec.path.empty()) {  // not for drawn pictures
    rows.set.exif = spec.get("exif", "ignore");
    std::error_code gone;  // the folder that the program runs in: then no path is from there
    rows.set.paths_from = std::filesystem::current_path(gone).string();
  }
  rows.name = rows.labels_in = options.data;
  rows.part = data.part();
  rows.text = fmt::format("{}, {}: {}", spec.text(), data.part(), counts_text(data));
  rows.categories = data.categories();
  for (std::string text : {note_rotated(data), note_other_exif(exif, spec)}) {
    if (!text.empty()) rows.notes.push_back(std::move(text));
  }
  rows.skipped_images = static_cast<std::int64_t>(embedder.bad_images().size());
  rows.facts["precision"] = options.precision;
  rows.picture = [data, item = items_of(rows.set, data)](std::int64_t row) {
    return data.load(item.at(static_cast<std::size_t>(row)));
  };
  add_provenance(embedder, data, options.checkpoint, rows);
  return rows;
}

}  // namespace rk
