// A batch of noise and a small network, for tests that need training to run, not to learn.
#pragma once

#include "data/loader/loader.h"
#include "training/trainer.h"

#include <cstdint>
#include <string>
#include <vector>

namespace rk {

class NoiseBatch {
 public:
  // Classes of `per_class` images; another `seed` gives other images with other indices, which are
  // their image_ids.
  NoiseBatch(std::int64_t count, int size, std::uint32_t seed = 0, std::int64_t per_class = 4)
      : pixels_(static_cast<std::size_t>(count * size * size * 3)) {
    for (std::size_t i = 0; i < pixels_.size(); ++i) {
      const std::uint32_t first = seed * 1000003U;
      const std::size_t at = i + first;
      pixels_[i] = static_cast<std::uint8_t>(at * 2654435761U >> 13);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      labels_.push_back(i / per_class);
      indices_.push_back(i + count * seed);
    }
    batch_.count = count;
    batch_.size = size;
    batch_.pixels = pixels_;
    batch_.labels = labels_;
    batch_.indices = indices_;
  }
  NoiseBatch(const NoiseBatch&) = delete;
  NoiseBatch& operator=(const NoiseBatch&) = delete;

  const Batch& get() const { return batch_; }
  // The images [part, part + 1) * count / parts.
  Batch part(std::int64_t part, std::int64_t parts) const {
    Batch images = batch_;
    images.count /= parts;
    const auto cut = [&](auto values) {
      const std::size_t size = values.size() / static_cast<std::size_t>(parts);
      return values.subspan(static_cast<std::size_t>(part) * size, size);
    };
    images.pixels = cut(images.pixels);
    images.labels = cut(images.labels);
    images.indices = cut(images.indices);
    return images;
  }

 private:
  std::vector<std::uint8_t> pixels_;
  std::vector<std::int64_t> labels_, indices_;
  Batch batch_;
};

// A ResNet-20 on images of 16 pixels.
inline TrainerOptions small_trainer(const std::string& loss, std::int64_t batch) {
  TrainerOptions options;
  options.model.arch = "resnet20";
  options.model.dim = 8;
  options.model.crop = options.model.resize = 16;
  options.loss = parse_loss(loss);
  options.schedule.rate = 1e-3;
  options.batch = batch;
  options.classes = 4;
  return options;
}

}  // namespace rk
