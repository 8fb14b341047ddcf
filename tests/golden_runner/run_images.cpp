#include "tests/golden_runner/golden.h"
#include "tests/support/goldens/image_goldens.h"

#include <fmt/format.h>

#include <string>

namespace rk::golden {

void run_images(const std::filesystem::path& folder, const Device& device, Report& report) {
  if (device.cuda) {
    report.skip("images", "pictures are read by the CPU");
    return;
  }
  const ImageGoldens goldens(folder);
  for (const nlohmann::json& entry : goldens.manifest.at("files")) {
    const auto file = entry.at("file").get<std::string>();
    const std::string name = "images/" + file;
    Decoded decoded = check_decoding(goldens, entry);
    if (decoded.complaint.empty() && decoded.image) {
      decoded.complaint = check_transforms(goldens, entry, *decoded.image);
    }
    if (!decoded.complaint.empty()) {
      report.fail(name, decoded.complaint);
    } else if (decoded.image) {
      report.pass(name, fmt::format("0 differences in rgb and {} transforms (tolerance 0)",
                                    entry.at("tensors").size()));
    } else {
      report.pass(name, "refused: " + decoded.refusal.substr((folder / file).string().size() + 2));
    }
  }
  for (const nlohmann::json& entry : goldens.resize.at("cases")) {
    const std::string name = fmt::format(
        "images/resize {} {} {} to {}", entry.at("filter").get<std::string>(),
        entry.at("input").get<std::string>(), entry.at("in").dump(), entry.at("out").dump());
    if (!entry.at("required").get<bool>()) {
      report.skip(name, "only the bilinear filter is part of the product");
      continue;
    }
    const std::string complaint = check_resize(entry);
    if (complaint.empty()) {
      report.pass(name, "0 differences (tolerance 0)");
    } else {
      report.fail(name, complaint);
    }
  }
}

}  // namespace rk::golden
