// Pictures of noise, and a temporary folder that is a data set of them.
#pragma once

#include "data/images/encode_png.h"
#include "engine/base/random.h"
#include "tests/support/temporary_folder.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rk {

// A picture of noise that no other seed has.
inline Image noise_image(int width, int height, std::uint64_t seed) {
  Image image(width, height);
  CounterRandom random(seed, 0, 0);
  for (std::size_t i = 0; i < image.bytes(); ++i) {
    image.data()[i] = static_cast<std::uint8_t>(random.below(256));
  }
  return image;
}

class PictureFolder : public TemporaryFolder {
 public:
  std::string spec() const { return "folder:" + path().string(); }

  void picture(const std::string& name, std::uint64_t seed, int width = 24, int height = 18) const {
    const std::vector<std::byte> png = encode_png(noise_image(width, height, seed));
    write(name, png);
  }

  // prefix0/0.png ..., `images` in each of `classes`.
  void classes(const std::string& prefix, int classes, int images) const {
    for (int c = 0; c < classes; ++c) {
      for (int i = 0; i < images; ++i) {
        picture(fmt::format("{}{}/{}.png", prefix, c, i),
                static_cast<std::uint64_t>(std::int64_t{c} * 1000 + i));
      }
    }
  }
};

}  // namespace rk
