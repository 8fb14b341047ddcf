// golden FOLDER [TOPIC...] [--device cpu|cuda|cuda:INDEX]; --help says the rest.
#include "engine/base/error.h"
#include "engine/device/context.h"
#include "tests/golden_runner/golden.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

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
  CLI::App app(
      "Runs the cases of a folder laid out like tests/golden, one line a case. Exit code 0 when at "
      "least one case passed and none failed.",
      "golden");
  std::string folder, device_name = "cpu";
  std::vector<std::string> wanted;
  app.add_option("FOLDER", folder, "with losses, networks, images or metrics in it")->required();
  app.add_option("TOPIC", wanted, "only these of losses, networks, images, metrics");
  app.add_option("--device", device_name, "cpu, cuda or cuda:INDEX")->capture_default_str();
  app.set_version_flag("--version", "Rankine " RK_VERSION);
  rk::Device device;
  try {
    app.parse(argc, argv);
    for (const std::string& name : wanted) {
      if (std::ranges::none_of(kTopics, [&](const Topic& topic) { return topic.name == name; })) {
        throw CLI::ValidationError(name + ": no such topic; losses, networks, images or metrics");
      }
    }
    device = rk::parse_device(device_name).device();
    const rk::Context works(1, device);
  } catch (const CLI::Success& answered) {
    return app.exit(answered);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return static_cast<int>(rk::ExitCode::kUsage);
  } catch (const rk::Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return static_cast<int>(error.exit_code());
  }
  const std::filesystem::path root(folder);
  rk::golden::Report report;
  for (const Topic& topic : kTopics) {
    const bool named = std::ranges::find(wanted, topic.name) != wanted.end();
    const std::filesystem::path cases = root / topic.name;
    if (!wanted.empty() && !named) continue;
    if (!std::filesystem::is_directory(cases)) {
      // A folder may hold some topics only, but one asked for by name must be there.
      if (named) report.fail(topic.name, cases.string() + ": no such folder");
      continue;
    }
    try {
      topic.run(cases, device, report);
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
