#include "training/memory_fit.h"

#include "engine/base/english.h"
#include "engine/device/out_of_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

namespace rk {

std::int64_t images_that_fit(const MemoryNeed& need, std::int64_t free) {
  return std::max<std::int64_t>(0, free - need.fixed) / std::max<std::int64_t>(1, need.per_image);
}

std::int64_t largest_divisor(std::int64_t images, std::int64_t most) {
  std::int64_t divisor = std::min(images, most);
  while (divisor > 1 && images % divisor != 0) --divisor;
  return divisor;
}

std::int64_t chunk_that_fits(const MemoryNeed& need, std::int64_t free, std::int64_t batch) {
  const std::int64_t most = images_that_fit(need, free - need.in_parts);
  return most == 0 ? 0 : largest_divisor(batch, most);
}

std::string fitting_advice(const MemoryNeed& need, std::int64_t free, std::int64_t batch,
                           std::int64_t images, MemoryOf where) {
  const bool gpu = where == MemoryOf::kGpu;
  const char* whose = gpu ? "the GPU's" : "this machine's";
  const std::string in_each =
      need.processes == 1 ? "" : fmt::format(" in each of {} processes", need.processes);
  const std::int64_t needed =
      need.fixed + images * need.per_image + (images < batch ? need.in_parts : 0);
  if (needed <= free) return "";
  // Batches are whole classes, mostly of 2, 4 or 8 images; smaller ones may hold no whole class.
  constexpr std::int64_t kRound = 8;
  const std::int64_t most = images_that_fit(need, free);
  std::vector<std::string> advice;
  if (const std::int64_t chunk = chunk_that_fits(need, free, batch); chunk > 0) {
    advice.push_back(fmt::format("--chunk {} (the batch in pieces)", chunk));
  }
  if (most >= kRound) {
    advice.push_back(fmt::format("--batch {}", most / kRound * kRound * need.processes));
  }
  if (advice.empty()) {
    return fmt::format(
        "{} memory is too small: a single image{} needs {}, {} are free; end what else runs {}, or "
        "take a smaller network or image",
        whose, in_each, gibibytes(need.fixed + need.in_parts + need.per_image), gibibytes(free),
        gpu ? "on the GPU (nvidia-smi)"
            : "here, raise the limit of this program (ulimit -v, a container's)");
  }
  return fmt::format("{} memory is too small: {} at a time{} need {}, {} are free; use {}", whose,
                     counted(images, "image"), in_each, gibibytes(needed), gibibytes(free),
                     fmt::join(advice, " or "));
}

}  // namespace rk
