// Writes the nearest candidates of each query to an HDF5 file: /neighbours int64 [N, k], rows of
// the gallery from best to worst (-1 if there are no more candidates), and /scores float32 [N, k]
// (NaN in those places).
#pragma once

#include "engine/device/context.h"
#include "retrieval/nearest.h"
#include "tools/cli/cli.h"
#include "tools/eval/inputs/described_rows.h"

#include <cstdint>
#include <string>

namespace rk {

struct NeighbourOptions {
  std::int64_t topk = 10;
  std::string save;  // empty: not requested

  void add_to(Flags& flags);
};

struct SearchFor {
  std::int64_t topk = 10;
  Ties ties = Ties::kByRow;
  std::string label = "searching";  // of the progress display
};

// Stops if a signal asks to.
Neighbours find_neighbours(const Context& context, const EvaluatedRows& rows, const SearchFor& what,
                           const CommonOptions& common);

void write_neighbours(const std::string& path, const Neighbours& neighbours);

}  // namespace rk
