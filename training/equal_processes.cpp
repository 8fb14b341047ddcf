#include "training/equal_processes.h"

#include "engine/base/error.h"
#include "engine/base/fnv1a.h"
#include "engine/base/text_of.h"

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rk {
namespace {

// The first process whose value differs from that of process 0; 0 if all are equal.
std::size_t first_other(ProcessGroup& processes, std::uint64_t mine) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(processes.size()));
  processes.all_gather<std::uint64_t>({&mine, 1}, all);
  std::size_t rank = 0;
  while (rank < all.size() && all[rank] == all[0]) ++rank;
  return rank < all.size() ? rank : 0;
}

}  // namespace

void require_equal_starts(ProcessGroup& processes, const ProcessStart& start) {
  if (processes.alone()) return;
  const auto require = [&](const std::string& mine, const std::string& what, const char* mend) {
    const std::size_t other = first_other(processes, fnv1a(mine));
    if (other > 0) fail<InputError>("process {} has {} than process 0; {}", other, what, mend);
  };
  require(start.data, "other training images", "let all read the same --data");
  require(start.held_out, "other held-out images", "let all read the same --data and --test-data");
  require(start.place, "another run to go on from", "let all have the same --out");
  require(start.weights, "other weights", "let all read the same --weights");
  for (const auto& [name, value] : start.settings) {
    require(value, "another --" + name, "start all with the same flags, --recipe and --out");
  }
}

void require_equal_parameters(ProcessGroup& processes, const Parameters& parameters,
                              const RunState& run) {
  if (processes.alone()) return;
  const std::string_view text = text_of(std::as_bytes(parameters.values()));
  const std::size_t other = first_other(processes, fnv1a(text));
  if (other == 0) return;
  fail<UnequalProcesses>(
      "process {} has other parameters than process 0 after step {}; let all begin with the same "
      "--weights and --out, on machines with the same processor and libraries",
      other, run.step);
}

}  // namespace rk
