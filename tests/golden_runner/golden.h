// Runs every case of a folder laid out like tests/golden/ through the product and reports one line
// a case: its worst error in units of the tolerance, and a closing count.
#pragma once

#include "engine/driver/device.h"

#include <filesystem>
#include <string>

namespace rk::golden {

class Report {
 public:
  // `detail` says errors and tolerances: "loss 3.1e-08/1.0e-05 grad 2.2e-07/1.0e-05".
  void pass(const std::string& name, const std::string& detail);
  void fail(const std::string& name, const std::string& detail);
  void skip(const std::string& name, const std::string& reason);
  int passed() const { return passed_; }
  int failed() const { return failed_; }
  int skipped() const { return skipped_; }

 private:
  int passed_ = 0;
  int failed_ = 0;
  int skipped_ = 0;
};

// `folder` is the topic's own: losses, networks, images or metrics in the golden folder. On a GPU,
// cases that the product has no GPU code for are skipped.
void run_losses(const std::filesystem::path& folder, const Device& device, Report& report);
void run_networks(const std::filesystem::path& folder, const Device& device, Report& report);
void run_images(const std::filesystem::path& folder, const Device& device, Report& report);
void run_metrics(const std::filesystem::path& folder, const Device& device, Report& report);

}  // namespace rk::golden
