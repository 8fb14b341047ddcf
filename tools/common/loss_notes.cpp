#include "tools/common/loss_notes.h"

#include <fmt/format.h>

namespace rk {

std::vector<std::string> loss_notes(const LossSpec& loss, const std::string& text) {
  std::vector<std::string> lines;
  lines.reserve(loss.without_effect.size());
  for (const std::string& line : loss.without_effect) {
    lines.push_back(fmt::format("--loss {}: {}", text, line));
  }
  return lines;
}

}  // namespace rk
