#include "tools/eval/neighbours.h"

#include "tools/cli/with_progress.h"
#include "weights/atomic_file.h"
#include "weights/hdf5/file.h"
#include "weights/written_by.h"

#include <limits>
#include <vector>

namespace rk {

void NeighbourOptions::add_to(Flags& flags) {
  flags.add("--topk", topk, "how many neighbours of each query --save-neighbours and --index give")
      .check({in_range(1, 1 << 20).problem});
  flags
      .add("--save-neighbours", save,
           "also write the best --topk candidates of each query (also of --index) to this file: "
           "HDF5, "
           "/neighbours (rows of the gallery, best first) and /scores")
      .check(file_name())
      .type_name("FILE");
}

Neighbours find_neighbours(const Context& context, const EvaluatedRows& rows, const SearchFor& what,
                           const CommonOptions& common) {
  NearestOptions options;
  options.k = what.topk;
  options.ties = what.ties;
  return with_progress({what.label, rows.queries.count(), "queries", common.quiet}, options, [&] {
    return with_views(rows, [&](const EmbeddingView& queries, const EmbeddingView* gallery) {
      return nearest(context, queries, gallery, options);
    });
  });
}

void write_neighbours(const std::string& path, const Neighbours& neighbours) {
  const auto size = static_cast<std::size_t>(neighbours.queries() * neighbours.k());
  std::vector<std::int64_t> rows(size, -1);
  std::vector<float> scores(size, std::numeric_limits<float>::quiet_NaN());
  for (std::int64_t q = 0; q < neighbours.queries(); ++q) {
    auto at = static_cast<std::size_t>(q * neighbours.k());
    for (const Neighbour& each : neighbours.of(q)) {
      rows[at] = each.row;
      scores[at++] = each.score;
    }
  }
  const std::vector<std::int64_t> dims = {neighbours.queries(), neighbours.k()};
  Hdf5Writer file;
  sign(file);
  file.write("/neighbours", dims, rows.data());
  file.write("/scores", dims, scores.data());
  write_atomic(path, file.finish());
}

}  // namespace rk
