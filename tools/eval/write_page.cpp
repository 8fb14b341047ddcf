#include "tools/eval/write_page.h"

#include "retrieval/report/page.h"
#include "tools/cli/build_commit.h"
#include "tools/cli/messages.h"
#include "weights/atomic_file.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

namespace rk {

ReportFacts page_facts(const Context& context, const CommonOptions& common) {
  const std::string gpu = context.gpu_name();
  return {{"Command", common.command_line},
          {"Version", fmt::format("Rankine {}{}{}", RK_VERSION,
                                  build_commit().empty() ? "" : ", commit ", build_commit())},
          {"Machine", (gpu.empty() ? "" : gpu + ", ") + context.describe()},
          {"Date", fmt::format("{:%F %T} UTC", fmt::gmtime(std::time(nullptr)))}};
}

void write_page(const std::string& path, const std::string& page, const CommonOptions& common) {
  write_atomic(path, page);
  if (!common.quiet) tell("report: {}, {} KB; open it in a browser", path, page.size() / 1000);
}

}  // namespace rk
