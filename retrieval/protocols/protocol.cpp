#include "retrieval/protocols/protocol.h"

#include "engine/base/error.h"

#include <algorithm>

namespace rk {

const std::vector<Protocol>& protocols() {
  static const std::vector<Protocol> all{
      {"sop", {1, 10, 100, 1000}, "test against itself"},
      {"inshop", {1, 10, 20, 30, 40, 50}, "query against gallery, nothing removed", true},
      {"cub", {1, 2, 4, 8}, "test classes against themselves"},
      {"cars", {1, 2, 4, 8}, "test classes against themselves"},
      {"inaturalist", {1, 4, 16, 32}, "test against itself"},
      {"vehicleid-all-vs-all", {1, 5}, "test against itself"},
      {"vehicleid-official",
       {1, 5},
       "ten drawn galleries of one image a class",
       false,
       false,
       true},
      {"veri-wild", {1, 5, 10}, "query against gallery, same label and camera removed", true, true},
  };
  return all;
}

const Protocol& protocol_named(const std::string& name) {
  const auto& all = protocols();
  const auto found = std::ranges::find(all, name, &Protocol::name);
  if (found == all.end()) fail<UsageError>("--protocol {}: there is none of this name", name);
  return *found;
}

}  // namespace rk
