// eval's protocol: the k that it reports, the inputs that it requires, and the protocol that draws
// galleries.
#pragma once

#include "engine/device/context.h"
#include "tools/cli/cli.h"
#include "tools/eval/inputs/described_rows.h"
#include "tools/eval/measure.h"

#include <string>

namespace rk {

struct ProtocolOptions {
  std::string name;  // empty: search what is given, as most protocols do

  // Call after --recall-at has been added.
  void add_to(Flags& flags);

  bool draws() const;
  // Takes the protocol's k unless --recall-at was given.
  void choose(MeasureOptions& measures) const;
  // Throws InputError if a gallery or cameras are missing, or are given although the protocol has
  // none.
  void check(const EvaluatedRows& rows) const;

 private:
  Flag recall_at_;
};

// Measures `rows` with drawn galleries, prints the table and adds the results to `json`.
void measure_draws(const Context& context, const DescribedRows& rows, const std::string& what,
                   const ProtocolOptions& protocol, const MeasureOptions& measures,
                   const CommonOptions& common, nlohmann::json& json);

}  // namespace rk
