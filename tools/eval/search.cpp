#include "tools/eval/search.h"

#include "data/sources/pictures.h"
#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/base/note.h"
#include "engine/base/printable.h"
#include "retrieval/files/embeddings_file.h"
#include "retrieval/files/mapped_file.h"
#include "retrieval/report/search_page.h"
#include "tools/cli/flags/shell_word.h"
#include "tools/cli/json_file.h"
#include "tools/cli/messages.h"
#include "tools/common/image_check.h"
#include "tools/eval/inputs/embed_data.h"
#include "tools/eval/row_pictures.h"
#include "tools/eval/write_page.h"
#include "training/training_exif.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

namespace rk {
namespace {

DescribedRows read_index(const std::string& path, const CheckpointEmbedder& embedder,
                         const std::string& checkpoint) {
  DescribedRows index;
  index.name = path;
  if (!holds_hdf5(path)) {
    fail<InputError>("{}: is no index; --index takes what `eval --save-embeddings` wrote", path);
  }
  index.set = read_embeddings(path);
  // The camera rule does not apply, since queries have no camera.
  index.set.cameras.clear();
  if (index.set.network.empty()) {
    fail<InputError>(
        "{}: does not say which network embedded it; write it by `eval --checkpoint {} --data SPEC "
        "--save-embeddings {}`",
        path, shell_word(checkpoint), shell_word(path));
  }
  if (index.set.network != embedder.network()) {
    fail<InputError>(
        "{}: embedded by another network ({:.12}) than {} ({:.12}); write it anew by "
        "--save-embeddings, or give its checkpoint",
        path, index.set.network, checkpoint, embedder.network());
  }
  return index;
}

// The name of a row of the index: its picture's path from here, or its number if the index has no
// paths.
std::string name_of(const DescribedRows& index, std::int64_t row) {
  return index.set.paths.empty() ? fmt::format("row {}", row) : picture_path(index, row);
}

// Prints what was found for each query as it goes; returns the entries of the JSON.
nlohmann::json results_of(const EvaluatedRows& searched, const Neighbours& found) {
  const DescribedRows& gallery = *searched.gallery;
  nlohmann::json out = nlohmann::json::array();
  for (std::int64_t q = 0; q < found.queries(); ++q) {
    const std::string& query = searched.queries.set.paths[at(q)];
    nlohmann::json results = nlohmann::json::array();
    print("{}\n", one_line(query));
    std::size_t place = 0;
    for (const Neighbour& each : found.of(q)) {
      const std::string name = name_of(gallery, each.row);
      const std::string of = name_or_number(gallery.set.classes, gallery.set.labels[at(each.row)]);
      print("{:6}  {:.4f}  {}  {}\n", ++place, each.score, one_line(of), one_line(name));
      results.push_back({{"row", each.row}, {"score", each.score}, {"path", name}, {"class", of}});
    }
    out.push_back({{"query", query}, {"results", std::move(results)}});
  }
  return out;
}

// The number of queries that are a picture of the index: by where it was embedded from, or, through
// links or after a move, as one that was found. Files of other rows are not looked at.
std::int64_t count_in_index(const EvaluatedRows& searched, const Neighbours& found) {
  const DescribedRows& index = *searched.gallery;
  if (index.set.paths.empty()) return 0;
  std::unordered_set<std::string> recorded;
  for (std::int64_t row = 0; row < index.count(); ++row) {
    recorded.insert(recorded_path(index.set, row));
  }
  std::int64_t count = 0;
  for (std::int64_t q = 0; q < found.queries(); ++q) {
    const std::string& query = searched.queries.set.paths[at(q)];
    const auto is_query = [&](const Neighbour& each) {
      std::error_code ignored;
      return std::filesystem::equivalent(picture_path(index, each.row), query, ignored);
    };
    count += recorded.contains(recorded_path(searched.queries.set, q)) ||
             std::ranges::any_of(found.of(q), is_query);
  }
  return count;
}

// How many of the pictures that were found are no longer where their paths lead.
std::size_t count_gone(const DescribedRows& index, const Neighbours& found) {
  if (index.set.paths.empty()) return 0;
  std::unordered_set<std::int64_t> gone;
  for (std::int64_t q = 0; q < found.queries(); ++q) {
    for (const Neighbour& each : found.of(q)) {
      std::error_code ignored;
      if (!std::filesystem::exists(picture_path(index, each.row), ignored)) gone.insert(each.row);
    }
  }
  return gone.size();
}

FoundPictures page_of_search(const EvaluatedRows& searched, const Neighbours& found) {
  const EmbeddingSet &queries = searched.queries.set, &gallery = searched.gallery->set;
  const std::string& index = searched.gallery->name;
  RowPictures pictures = pictures_of(searched);
  return {.title = fmt::format("Search in {}", index),
          .data = fmt::format("{} looked up in {}: {} of {}", counted(queries.count(), "picture"),
                              index, counted(gallery.count(), "row"),
                              counted(count_classes(gallery), "class")),
          .notes = {},
          .queries = queries,
          .gallery = gallery,
          .found = found,
          .picture = std::move(pictures.picture),
          .no_pictures = std::move(pictures.none),
          .facts = {}};
}

}  // namespace

void SearchOptions::add_to(Flags& flags) {
  const Flag in = flags
                      .add("--index", index,
                           "look pictures up instead of measuring: in this file of "
                           "--save-embeddings, by the same --checkpoint")
                      .type_name("FILE");
  const Flag what = flags
                        .add("--query", queries,
                             "what to look up: pictures, or folders of pictures; prints the "
                             "--topk nearest of each with scores")
                        .type_name("FILE")
                        .default_text("")
                        .needs(in);
  in.needs(what);
}

void search(const Context& context, const SearchOptions& options, const NetworkOptions& network,
            const NeighbourOptions& neighbours, const std::string& report,
            const CommonOptions& common) {
  // No larger batch than there are pictures.
  const Dataset listed = read_pictures(options.queries, false);
  std::optional<Checkpoint> checkpoint = open_network(network);
  const std::string exif = training_exif(*checkpoint);
  CheckpointEmbedder embedder(context, *checkpoint, std::min(network.batch, listed.size()),
                              precision_of(network.precision));
  checkpoint.reset();  // as large as the embedder's parameters
  DescribedRows index = read_index(options.index, embedder, network.checkpoint);
  std::vector<std::string> notes;  // what the results must be read with
  // As the index was embedded, or else as the network was trained.
  const bool turned = (index.set.exif.empty() ? exif : index.set.exif) == "turn";
  const Dataset pictures = read_pictures(options.queries, turned);
  if (!pictures.left_out().empty()) {
    note(notes.emplace_back(fmt::format("--query: left out {}", text_of(pictures.left_out()))));
  }
  DescribedRows queries;
  queries.name = "--query";
  queries.set = embed_pictures(embedder, pictures, network, common);
  queries.set.exif = turned ? "turn" : "ignore";
  const std::string rotated = note_rotated(
      pictures, 0,
      "as are those of the index; from data with ,exif=turn it would have them upright");
  if (!rotated.empty()) notes.push_back(rotated);
  if (const std::size_t bad = embedder.bad_images().size(); bad > 0) {
    notes.push_back(fmt::format("{} of --query cannot be read: left out", counted(bad, "picture")));
  }
  if (queries.set.dim != index.set.dim) {
    fail<InputError>(
        "{}: rows of {} numbers, but the network makes {}; write it anew by "
        "--save-embeddings",
        index.name, index.set.dim, queries.set.dim);
  }
  const EvaluatedRows searched = {std::move(queries), std::move(index)};
  const Neighbours found = find_neighbours(context, searched, {.topk = neighbours.topk}, common);

  nlohmann::json results = results_of(searched, found);
  if (const std::int64_t held = count_in_index(searched, found); held > 0) {
    note(notes.emplace_back(
        found.queries() == 1
            ? fmt::format("{}: holds the picture of --query, which finds itself", options.index)
            : fmt::format("{}: holds {} of the {} pictures of --query, which find themselves",
                          options.index, held, found.queries())));
  }
  if (const std::size_t gone = count_gone(*searched.gallery, found); gone > 0) {
    note(notes.emplace_back(fmt::format(
        "{}: of the pictures that were found, {} {} no longer there; move them back, or write it "
        "anew by --save-embeddings",
        options.index, gone, gone == 1 ? "is" : "are")));
  }
  if (!neighbours.save.empty()) write_neighbours(neighbours.save, found);
  if (!report.empty()) {
    FoundPictures page = page_of_search(searched, found);
    page.notes = std::move(notes);
    page.facts = page_facts(context, common);
    page.facts.emplace_back("Checkpoint", network.checkpoint);
    page.facts.emplace_back("SHA-256 of the network", embedder.network());
    write_page(report, search_page(page), common);
  }
  write_result(common, context.threads(),
               {{"index", options.index},
                {"checkpoint", network.checkpoint},
                {"report", report},
                {"skipped_images", embedder.bad_images().size()},
                {"queries", std::move(results)},
                {"topk", neighbours.topk},
                {"precision", network.precision}});
}

}  // namespace rk
