// eval --index: the nearest pictures of a collection to pictures that are given.
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
  std::string sheet = "search.png";

  void add_to(Flags& flags);
};

// Prints the results of each query and writes the contact sheet and --json. InputError where the
// index is another network's or does not say whose, or a picture cannot be read.
void search(const Context& context, const SearchOptions& options, const NetworkOptions& network,
            const NeighbourOptions& neighbours, const CommonOptions& common);

}  // namespace rk
