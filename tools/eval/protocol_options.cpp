#include "tools/eval/protocol_options.h"

#include "engine/base/error.h"
#include "engine/base/note.h"
#include "retrieval/files/mapped_file.h"
#include "retrieval/protocols/protocol.h"
#include "tools/cli/messages.h"
#include "tools/cli/with_progress.h"
#include "tools/common/metrics_report.h"

#include <fmt/ranges.h>

namespace rk {

void ProtocolOptions::add_to(Flags& flags) {
  std::vector<std::string> names;
  for (const Protocol& protocol : protocols()) names.push_back(protocol.name);
  recall_at_ = flags["--recall-at"];
  flags
      .add("--protocol", name,
           "of a published data set: checks that what it needs is there and reports its k of "
           "R@k. vehicleid-official draws ten galleries of one image a class (by --seed)")
      .check(one_of(names));
}

bool ProtocolOptions::draws() const { return !name.empty() && protocol_named(name).draws; }

void ProtocolOptions::choose(MeasureOptions& measures) const {
  if (name.empty()) return;
  const std::vector<std::int64_t>& own = protocol_named(name).recall_at;
  if (!recall_at_.given()) {
    measures.recall_at = own;
  } else if (measures.recall_at != own) {
    note(
        fmt::format("--recall-at replaces the k of --protocol {}: {}", name, fmt::join(own, ", ")));
  }
}

void ProtocolOptions::check(bool gallery, bool embeds) const {
  if (name.empty()) return;
  const Protocol& protocol = protocol_named(name);
  if (protocol.gallery != gallery) {
    fail<UsageError>("--protocol {}: {}", name,
                     protocol.gallery ? "searches in a gallery; give it with --gallery"
                                      : "searches among the rows themselves; leave --gallery out");
  }
  if (protocol.cameras && embeds) {
    fail<UsageError>(
        "--protocol {}: removes by cameras, which --data does not say; write the embeddings with "
        "--save-embeddings, and give the file with --embeddings, and their cameras with --cameras",
        name);
  }
}

void ProtocolOptions::check_cameras(EvaluatedRows& rows) const {
  if (name.empty()) return;
  const Protocol& protocol = protocol_named(name);
  const auto check_side = [&](DescribedRows& side) {
    if (protocol.cameras == !side.set.cameras.empty()) return;
    if (protocol.draws) {
      note(side.notes.emplace_back(
          fmt::format("{}: --protocol {} knows no cameras, so that its cameras remove nothing",
                      side.name, name)));
      return;
    }
    fail<InputError>("{}: --protocol {} {}", side.name, name,
                     protocol.cameras
                         ? "removes by cameras, of which the file holds none; give them with "
                           "--cameras FILE, those of a gallery with --gallery-cameras"
                         : "knows no cameras, and these would remove candidates; leave --protocol "
                           "out");
  };
  check_side(rows.queries);
  if (rows.gallery) check_side(*rows.gallery);
}

void measure_draws(const Context& context, const EvaluatedRows& rows, const std::string& what,
                   const ProtocolOptions& protocol, const MeasureOptions& measures,
                   const CommonOptions& common, nlohmann::json& json) {
  // A drawn gallery holds one image of each class.
  const std::vector<std::string> odd =
      note_what_is_odd(measures, rows, count_classes(rows.queries.set));
  DrawOptions options;
  options.recall_at = measures.recall_at;
  options.seed = common.seed;
  const auto metrics =
      with_progress({"ranking", options.draws, "draws", common.quiet}, options, [&] {
        try {
          return vehicleid_official(context, rows.queries.view(), options);
        } catch (const InputError& error) {
          fail<InputError>("{}: {}", rows.queries.name, error.what());
        }
      });
  check_mapped_files();
  print("{}", draws_table(what, metrics, options, protocol.name));
  json.update({{"protocol", protocol.name + ": " + protocol_named(protocol.name).text},
               {"protocol_name", protocol.name},
               {"seed", common.seed},
               {"metrics", draws_json(metrics, options)}});
  for (const std::string& text : odd) json["notes"].push_back(text);
}

}  // namespace rk
