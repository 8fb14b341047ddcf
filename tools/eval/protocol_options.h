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
  // Throws UsageError if a gallery is missing or is given although the protocol has none, or if the
  // protocol needs cameras, which rows embedded from pictures do not have.
  void check(bool gallery, bool embeds) const;
  // Throws InputError if cameras are missing, or would remove candidates although the protocol
  // knows none. Where galleries are drawn they remove nothing, which is noted.
  void check_cameras(EvaluatedRows& rows) const;

 private:
  Flag recall_at_;
};

// Measures `rows`, which have no gallery, with drawn ones; prints the table, and notes as measure()
// does, and adds the results and these notes to `json`.
void measure_draws(const Context& context, const EvaluatedRows& rows, const std::string& what,
                   const ProtocolOptions& protocol, const MeasureOptions& measures,
                   const CommonOptions& common, nlohmann::json& json);

}  // namespace rk
