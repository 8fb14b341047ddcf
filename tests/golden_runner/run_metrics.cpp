#include "engine/device/context.h"
#include "tests/golden_runner/golden.h"
#include "tests/support/goldens/metric_goldens.h"

#include <exception>

namespace rk::golden {
namespace {

constexpr int kThreads = 3;  // gives threads unequal shares

void report_verdict(const std::string& name, const MetricVerdict& verdict, Report& report) {
  if (verdict.passed) {
    report.pass(name, verdict.detail);
  } else {
    report.fail(name, verdict.detail);
  }
}

}  // namespace

void run_metrics(const std::filesystem::path& folder, const Device& device, Report& report) {
  const Context context(kThreads, device);
  for (const auto& file : metric_cases(folder)) {
    const std::string name = "metrics/" + file.stem().string();
    try {
      report_verdict(name, check_metric_case(file, context), report);
    } catch (const std::exception& error) {
      report.fail(name, error.what());
    }
  }
  for (const auto& file : bad_metric_cases(folder)) {
    const std::string name = "metrics/bad/" + file.stem().string();
    try {
      report_verdict(name, check_bad_metric_case(file), report);
    } catch (const std::exception& error) {
      report.fail(name, error.what());
    }
  }
}

}  // namespace rk::golden
