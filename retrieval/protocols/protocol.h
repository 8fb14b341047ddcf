// Protocols of the published data sets: queries, gallery, and which k are reported.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rk {

struct Protocol {
  std::string name;
  std::vector<std::int64_t> recall_at;
  std::string text;      // "test classes against themselves"
  bool gallery = false;  // the gallery is a set of its own; else rows are searched among themselves
  bool cameras = false;  // candidates of the query's label and camera are removed
  bool draws = false;    // galleries are drawn (retrieval/protocols/vehicleid_official.h)
};

const std::vector<Protocol>& protocols();

// Throws UsageError if there is none of this name.
const Protocol& protocol_named(const std::string& name);

}  // namespace rk
