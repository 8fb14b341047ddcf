#include "engine/device/out_of_memory.h"

#include <fmt/format.h>

namespace rk {

std::string gibibytes(std::int64_t bytes) {
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1 << 30));
}

std::string out_of_memory(std::int64_t asked, std::int64_t free, std::int64_t total) {
  return fmt::format(
      "the GPU is out of memory: {} asked for, {} of {} free; end what else runs on it "
      "(nvidia-smi)",
      gibibytes(asked), gibibytes(free), gibibytes(total));
}

}  // namespace rk
