#include "tools/eval/search.h"

#include "data/images/encode_png.h"
#include "data/sources/pictures.h"
#include "engine/base/error.h"
#include "engine/base/note.h"
#include "retrieval/files/embeddings_file.h"
#include "retrieval/files/mapped_file.h"
#include "tools/cli/json_file.h"
#include "tools/cli/messages.h"
#include "tools/common/image_check.h"
#include "tools/eval/contact_sheet.h"
#include "tools/eval/inputs/embed_data.h"
#include "training/training_exif.h"
#include "weights/atomic_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

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

// Queries are oriented as in the network's training; the index may have been embedded otherwise.
void note_other_exif(const EmbeddingSet& index, const std::string& name, bool turned) {
  const std::string now = turned ? "turn" : "ignore";
  if (index.exif.empty() || index.exif == now) return;
  note(fmt::format(
      "{}: its pictures were embedded with exif={}, those of --query are with exif={}; "
      "write it anew from data with exif={}{}",
      name, index.exif, now, now, turned ? "" : ", or train a network on data with ,exif=turn"));
}

// The name of a row of the index: its picture's path from here, or its number if the index has no
// paths.
std::string name_of(const DescribedRows& index, std::int64_t row) {
  return index.set.paths.empty() ? fmt::format("row {}", row) : picture_path(index, row);
}

std::string class_of(const EmbeddingSet& index, std::int64_t row) {
  const std::int64_t label = index.labels[static_cast<std::size_t>(row)];
  return index.classes.empty() ? std::to_string(label)
                               : index.classes[static_cast<std::size_t>(label)];
}

struct Results {
  std::vector<SheetRow> rows;                     // without results where the index has no paths
  nlohmann::json json = nlohmann::json::array();  // of each query
  std::int64_t found_themselves = 0;              // queries that are a picture of the index
};

// Prints what was found for each query as it goes.
Results results_of(const EvaluatedRows& searched, const Neighbours& found) {
  const DescribedRows& gallery = *searched.gallery;
  const bool has_paths = !gallery.set.paths.empty();
  Results out;
  for (std::int64_t q = 0; q < found.queries(); ++q) {
    SheetRow row{searched.queries.set.paths[static_cast<std::size_t>(q)], {}};
    nlohmann::json results = nlohmann::json::array();
    print("{}\n", one_line(row.query));
    std::size_t place = 0;
    bool itself = false;
    for (const Neighbour& each : found.of(q)) {
      const std::string name = name_of(gallery, each.row), of = class_of(gallery.set, each.row);
      print("{:6}  {:.4f}  {}  {}\n", ++place, each.score, one_line(of), one_line(name));
      results.push_back({{"row", each.row}, {"score", each.score}, {"path", name}, {"class", of}});
      if (!has_paths) continue;
      row.results.push_back({name, each.score});
      std::error_code ignored;
      itself = itself || std::filesystem::equivalent(name, row.query, ignored);
    }
    if (itself) ++out.found_themselves;
    out.json.push_back({{"query", row.query}, {"results", std::move(results)}});
    out.rows.push_back(std::move(row));
  }
  return out;
}

void write_sheet(const std::string& path, const std::vector<SheetRow>& rows, SheetTurns turns) {
  std::vector<std::string> problems;
  write_atomic(path, encode_png(contact_sheet(rows, turns, problems)));
  if (!problems.empty()) {
    note(fmt::format("{}: {} of its pictures cannot be read and are grey: {}", path,
                     problems.size(), problems.front()));
  }
  const bool cut = std::ranges::any_of(
      rows, [](const SheetRow& row) { return row.results.size() > kMostSheetResults; });
  std::string first;
  if (rows.size() > kMostSheetRows) first = fmt::format("the first {} queries", kMostSheetRows);
  if (cut) {
    first += fmt::format("{}the first {} results", first.empty() ? "" : ", ", kMostSheetResults);
  }
  print("contact sheet{}: {}\n", first.empty() ? "" : fmt::format(" ({})", first), one_line(path));
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
  flags.add("--sheet", sheet, "PNG of the queries beside what was found for them")
      .check(file_name())
      .type_name("FILE")
      .needs(in);
}

void search(const Context& context, const SearchOptions& options, const NetworkOptions& network,
            const NeighbourOptions& neighbours, const CommonOptions& common) {
  // No larger batch than there are pictures.
  const Dataset listed = read_pictures(options.queries, false);
  std::optional<Checkpoint> checkpoint = open_network(network);
  const bool turned = training_exif(*checkpoint) == "turn";
  CheckpointEmbedder embedder(context, *checkpoint, std::min(network.batch, listed.size()),
                              precision_of(network.precision));
  checkpoint.reset();  // as large as the embedder's parameters
  DescribedRows index = read_index(options.index, embedder, network.checkpoint);
  note_other_exif(index.set, index.name, turned);
  const Dataset pictures = read_pictures(options.queries, turned);
  if (!pictures.left_out().empty()) {
    note(fmt::format("--query: left out {}", text_of(pictures.left_out())));
  }
  DescribedRows queries;
  queries.name = "--query";
  queries.set = embed_pictures(embedder, pictures, network, common);
  note_rotated(pictures, 0,
               "as in this network's training; one trained on data with ,exif=turn turns them "
               "upright");
  if (queries.count() == 0) fail<InputError>("none of the pictures can be read; give others");
  if (queries.set.dim != index.set.dim) {
    fail<InputError>(
        "{}: rows of {} numbers, but the network makes {}; write it anew by "
        "--save-embeddings",
        index.name, index.set.dim, queries.set.dim);
  }
  const EvaluatedRows searched = {std::move(queries), std::move(index)};
  const Neighbours found = find_neighbours(context, searched, {.topk = neighbours.topk}, common);

  const DescribedRows& gallery = *searched.gallery;
  const bool has_paths = !gallery.set.paths.empty();  // without them there is no sheet
  Results results = results_of(searched, found);
  if (results.found_themselves > 0) {
    note(fmt::format("{}: holds {} of the {} pictures of --query itself, which find themselves",
                     gallery.name, results.found_themselves, found.queries()));
  }
  if (!neighbours.save.empty()) write_neighbours(neighbours.save, found);
  write_result(common, context.threads(),
               {{"index", options.index},
                {"checkpoint", network.checkpoint},
                {"sheet", has_paths ? options.sheet : ""},
                {"skipped_images", embedder.bad_images().size()},
                {"queries", std::move(results.json)},
                {"topk", neighbours.topk},
                {"precision", network.precision}});
  if (has_paths) {
    write_sheet(options.sheet, results.rows,
                {.queries = turned, .results = gallery.set.exif == "turn"});
  } else {
    note(fmt::format("{}: has no /paths, so that there is no contact sheet", gallery.name));
  }
}

}  // namespace rk
