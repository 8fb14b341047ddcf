// libFuzzer target: any text is a UsageError or an augmentation that survives being written and
// read back and fills every pixel.
#include "data/images/augment.h"
#include "engine/base/error.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const rk::AugmentOptions base = rk::center_crop(16, 18);
    const rk::AugmentOptions options = rk::parse_augment(text, base);
    const std::string complete = rk::augment_text(options);
    if (rk::augment_text(rk::parse_augment(complete, base)) != complete) std::abort();
    rk::Image image(23, 17);
    std::fill_n(image.data(), image.bytes(), std::uint8_t{9});
    std::vector<std::uint8_t> out(std::size_t{16} * 16 * 3), scratch;
    rk::augment(image, options, rk::augment_random(1, 2, 3, 4), out.data(), scratch);
  } catch (const rk::UsageError&) {
  }
  return 0;
}
