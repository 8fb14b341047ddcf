#include "tools/train/run_origin.h"

#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/base/text_of.h"
#include "engine/system/read_file.h"
#include "tools/cli/build_commit.h"
#include "tools/cli/json_file.h"
#include "tools/cli/parse_json.h"
#include "weights/run_folder.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <system_error>
#include <vector>

namespace rk {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json counts(const Dataset& data) {
  return {{"data", data.name()},
          {"part", data.part()},
          {"images", data.size()},
          {"classes", data.classes().size()},
          {"categories", data.categories().size()},
          {"fingerprint", fmt::format("{:016x}", data.fingerprint())}};
}

json start_of(const RunOrigin& origin) {
  std::error_code ignored;
  json start = {{"date", fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)))},
                {"command", origin.common.command_line},
                {"working_folder", fs::current_path(ignored).string()},
                {"version", RK_VERSION},
                {"device", origin.common.device},
                {"environment", origin.environment},
                {"processes", origin.processes},
                {"seed", origin.common.seed},
                {"epoch", origin.epoch},
                {"step", origin.step},
                {"train", counts(origin.train)}};
  if (!build_commit().empty()) start["commit"] = build_commit();
  if (origin.held_out != nullptr) start["held_out"] = counts(*origin.held_out);
  if (!origin.weights.empty()) start["weights"] = origin.weights;
  if (!origin.weights_sha256.empty()) start["weights_sha256"] = origin.weights_sha256;
  return start;
}

// Null if the file cannot be read as JSON.
json read_before(const std::string& path) {
  try {
    const std::vector<std::byte> bytes = read_file(path, std::size_t{16} << 20);
    return parse_json(text_of(bytes), path);
  } catch (const InputError&) {
    return {};
  }
}

}  // namespace

void write_origin(const std::string& folder, const RunOrigin& origin) {
  const std::string path = (fs::path(folder) / kOriginFile).string();
  json starts = json::array();
  std::error_code ignored;
  if (origin.resumed && fs::exists(path, ignored)) {
    const json before = read_before(path);
    if (before.is_object() && before.contains("starts") && before["starts"].is_array()) {
      starts = before["starts"];
    } else {
      note(fmt::format("{}: does not tell how this run began; it is written anew", path));
    }
  }
  starts.push_back(start_of(origin));
  write_json(path, {{"starts", std::move(starts)}});
}

}  // namespace rk
