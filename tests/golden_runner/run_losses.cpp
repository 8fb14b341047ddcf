#include "tests/golden_runner/golden.h"
#include "tests/support/goldens/loss_goldens.h"

#include <exception>

namespace rk::golden {

void run_losses(const std::filesystem::path& folder, const Device& device, Report& report) {
  for (const std::filesystem::path& file : loss_cases(folder)) {
    const std::string name = "losses/" + file.stem().string();
    try {
      const LossVerdict verdict = check_loss_case<float>(file, 1, device);
      if (verdict.skipped) {
        report.skip(name, verdict.detail);
      } else if (verdict.passed) {
        report.pass(name, verdict.detail);
      } else {
        report.fail(name, verdict.detail);
      }
    } catch (const std::exception& error) {
      report.fail(name, error.what());
    }
  }
}

}  // namespace rk::golden
