// eval's protocol: the k it reports, what it wants to be there, and the one that draws galleries.
#pragma once

#include "engine/device/context.h"
#include "tools/cli/cli.h"
#include "tools/eval/inputs/rows.h"
#include "tools/eval/measure.h"

#include <string>

namespace rk {

struct ProtocolOptions {
  std::string name;  // empty: whatever is given is searched, which is what most protocols do

  // After --recall-at has been added.
  void add_to(Flags& flags);

  bool draws() const;
  // The protocol's k where --recall-at was not given.
  void choose(MeasureOptions& measures) const;
  // InputError where a gallery or cameras are missing, or there though the protocol knows none.
  void check(const Rows& queries, const Rows* gallery) const;

 private:
  Flag recall_at_;
};

// Measures `rows` by drawn galleries, prints the table and writes what scripts read into `json`.
void measure_draws(const Context& context, const Rows& rows, const std::string& what,
                   const ProtocolOptions& protocol, const MeasureOptions& measures,
                   const CommonOptions& common, nlohmann::json& json);

}  // namespace rk
