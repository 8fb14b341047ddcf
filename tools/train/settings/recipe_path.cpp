#include "tools/train/settings/recipe_path.h"

#include "engine/base/error.h"
#include "engine/base/nearest.h"
#include "weights/run_folder.h"

#include <algorithm>
#include <system_error>

namespace rk {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEnding = ".toml";

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == kEnding) names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::vector<fs::path> recipe_folders() {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  if (program.empty()) return {};
  const fs::path root = program.parent_path().parent_path().parent_path();
  return {root / "recipes", root / "share/rankine/recipes"};
}

std::string find_recipe(const std::string& name, const std::vector<fs::path>& folders) {
  std::error_code ignored;
  if (fs::is_regular_file(name, ignored)) return name;
  const fs::path of_run = fs::path(name) / kSettingsFile;
  if (fs::is_regular_file(of_run, ignored)) {
    fail<InputError>("{}: is a folder; the settings of its run are {}", name, of_run.string());
  }
  std::vector<std::string> known;
  for (const fs::path& folder : folders) {
    if (fs::path(name).has_parent_path()) break;
    for (const std::string& file : {name, name + kEnding}) {
      if (fs::is_regular_file(folder / file, ignored)) return (folder / file).string();
    }
    for (std::string& there : names_in(folder)) known.push_back(std::move(there));
  }
  if (known.empty()) fail<InputError>("{}: no such recipe; check the path", name);
  fail<InputError>("{}: no such recipe; check the path ({})", name, suggestion(name, known));
}

}  // namespace rk
