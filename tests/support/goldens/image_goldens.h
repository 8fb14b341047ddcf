// The picture cases of a folder laid out like tests/golden/images (its README is their definition),
// for the unit tests and for the golden runner.
//
// Every check returns what is wrong, by stage and transform, or an empty text if nothing is. There
// is no tolerance: bytes and float32 are compared by their SHA-256.
#pragma once

#include "data/images/image.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace rk::golden {

std::string sha256(std::span<const std::byte> bytes);

struct ImageGoldens {
  explicit ImageGoldens(const std::filesystem::path& folder);

  std::filesystem::path folder;
  nlohmann::json manifest;
  nlohmann::json resize;
};

// What became of a file: its pixels, or why it was refused, and the complaint when either is wrong.
struct Decoded {
  std::optional<Image> image;
  std::string refusal;
  std::string complaint;
};

// One entry of manifest["files"].
Decoded check_decoding(const ImageGoldens& goldens, const nlohmann::json& entry);
// Every transform of the entry: resized, cropped, tensor, in this order.
std::string check_transforms(const ImageGoldens& goldens, const nlohmann::json& entry,
                             const Image& image);
// One of resize["cases"] that is required (bilinear).
std::string check_resize(const nlohmann::json& entry);

}  // namespace rk::golden
