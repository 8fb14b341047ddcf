// eval --index: finds the pictures of a collection that are nearest to given pictures.
#pragma once

#include "engine/device/context.h"
#include "tools/cli/cli.h"
#include "tools/eval/inputs/network_options.h"
#include "tools/eval/neighbours.h"

#include <string>
#include <vector>

namespace rk {

struct SearchOptions {
  std::string index;  // empty: eval measures
  std::vector<std::string> queries;

  void add_to(Flags& flags);
};

// Prints the results of each query, and writes --json and, unless `report` is empty, the page.
// Throws InputError if the index is from another or an unknown network, or if a picture cannot be
// read.
void search(const Context& context, const SearchOptions& options, const NetworkOptions& network,
            const NeighbourOptions& neighbours, const std::string& report,
            const CommonOptions& common);

}  // namespace rk
