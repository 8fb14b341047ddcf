// golden FOLDER [TOPIC...] [--device cpu|cuda|cuda:INDEX]: runs the cases of
// FOLDER/{losses,networks,images,metrics}, or of the topics named, one line a case. Exit code 0
// when at least one case passed and none failed.
#include "engine/base/error.h"
#include "engine/device/context.h"
#include "tests/golden_runner/golden.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

namespace {

struct Topic {
  const char* name;
  void (*run)(const std::filesystem::path& folder, const rk::Device& device,
              rk::golden::Report& report);
};

constexpr Topic kTopics[] = {{"losses", rk::golden::run_losses},
                             {"networks", rk::golden::run_networks},
                             {"images", rk::golden::run_images},
                             {"metrics", rk::golden::run_metrics}};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(
        stderr,
        "error: no folder given; golden FOLDER [losses|networks|images|metrics...] [--device "
        "cpu|cuda|cuda:INDEX]\n");
    return 2;
  }
  const std::filesystem::path root(argv[1]);
  std::vector<std::string> wanted(argv + 2, argv + argc);
  rk::Device device;
  if (wanted.size() >= 2 && wanted[wanted.size() - 2] == "--device") {
    device = rk::parse_device(wanted.back()).device();
    wanted.resize(wanted.size() - 2);
    try {
      const rk::Context works(1, device);
    } catch (const rk::DeviceError& error) {
      fmt::print(stderr, "error: {}\n", error.what());
      return static_cast<int>(error.exit_code());
    }
  }
  for (const std::string& name : wanted) {
    if (std::ranges::none_of(kTopics, [&](const Topic& topic) { return topic.name == name; })) {
      fmt::print(stderr, "error: {}: no such topic; losses, networks, images or metrics\n", name);
      return 2;
    }
  }
  rk::golden::Report report;
  for (const Topic& topic : kTopics) {
    const bool named = std::ranges::find(wanted, topic.name) != wanted.end();
    const std::filesystem::path folder = root / topic.name;
    if (!wanted.empty() && !named) continue;
    if (!std::filesystem::is_directory(folder)) {
      // A folder may hold some topics only, but one asked for by name must be there.
      if (named) report.fail(topic.name, folder.string() + ": no such folder");
      continue;
    }
    try {
      topic.run(folder, device, report);
    } catch (const std::exception& error) {
      report.fail(topic.name, error.what());
    }
  }
  fmt::print("{} passed, {} failed, {} skipped\n", report.passed(), report.failed(),
             report.skipped());
  if (report.passed() + report.failed() == 0) {
    fmt::print(stderr, "error: {}: no case ran; give a folder laid out like tests/golden\n",
               root.string());
    return 1;
  }
  return report.failed() == 0 ? 0 : 1;
}
