// Protocols of the published data sets: what is searched for in what, and which k are reported.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rk {

struct Protocol {
  std::string name;
  std::vector<std::int64_t> recall_at;
  std::string text;      // "test classes against themselves"
  bool gallery = false;  // queries and gallery are apart; else rows are searched among themselves
  bool cameras = false;  // candidates of the query's label and camera are removed
  bool draws = false;    // galleries are drawn (retrieval/protocols/vehicleid_official.h)
};

const std::vector<Protocol>& protocols();

// UsageError where there is none of this name.
const Protocol& protocol_named(const std::string& name);

}  // namespace rk
