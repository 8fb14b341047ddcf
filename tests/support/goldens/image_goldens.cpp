#include "tests/support/goldens/image_goldens.h"

#include "data/images/decode.h"
#include "data/images/resize.h"
#include "data/images/transform.h"
#include "engine/base/error.h"
#include "tests/support/read_image.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <vector>

namespace rk::golden {
namespace {

using nlohmann::json;

std::vector<std::byte> contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path.string() + ": cannot be opened");
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const auto view = std::as_bytes(std::span(bytes));
  return {view.begin(), view.end()};
}

std::span<const std::byte> bytes_of(const Image& image) {
  return std::as_bytes(std::span(image.data(), image.bytes()));
}

std::string sizes(const Image& image) {
  return fmt::format("{} x {}", image.width(), image.height());
}

ImageTransform transform_of(const json& definition) {
  ImageTransform transform;
  if (const json& size = definition.at("resize"); size.is_array()) {
    transform.short_side = 0;
    transform.exact_height = size.at(0).get<int>();
    transform.exact_width = size.at(1).get<int>();
  } else {
    transform.short_side = size.get<int>();
  }
  const json& crop = definition.at("crop");
  transform.crop = crop.is_null() ? 0 : crop.get<int>();
  return transform;
}

// Compares with whole/<file>.<transform>.<stage> if the folder holds it: says how many bytes differ
// and where, which a hash cannot.
std::string compare_whole(const ImageGoldens& goldens, const json& entry, const std::string& stage,
                          std::span<const std::byte> ours) {
  std::string stem = std::filesystem::path(entry.at("file").get<std::string>()).filename().string();
  std::ranges::replace(stem, '.', '_');
  const auto path = goldens.folder / "whole" / (stem + "." + stage);
  if (!std::filesystem::exists(path)) return "";
  const std::vector<std::byte> theirs = contents(path);
  if (theirs.size() != ours.size()) {
    return fmt::format(" {}: {} bytes, expected {}", stage, ours.size(), theirs.size());
  }
  const auto [first, other] = std::ranges::mismatch(ours, theirs);
  if (first == ours.end()) return "";
  std::size_t different = 0;
  for (std::size_t i = 0; i < theirs.size(); ++i) different += ours[i] != theirs[i] ? 1U : 0U;
  return fmt::format(" {}: {} of {} bytes differ, the first at {}", stage, different, theirs.size(),
                     first - ours.begin());
}

std::string check_transform(const ImageGoldens& goldens, const json& entry, const json& expected,
                            const Image& image) {
  const auto name = expected.at("transform").get<std::string>();
  const json& definition = goldens.manifest.at("transforms").at(name);
  const json& normalisation =
      goldens.manifest.at("normalisations").at(definition.at("normalisation").get<std::string>());
  const auto wrong = [&](const std::string& stage, const std::string& what) {
    return fmt::format(" {} {}{};", name, stage, what);
  };
  const ImageTransform transform = transform_of(definition);

  ImageTransform without_crop = transform;
  without_crop.crop = 0;
  const Image resized = apply(without_crop, image);
  const std::array<int, 2> size{resized.width(), resized.height()};
  if (size != expected.at("resized_size").get<std::array<int, 2>>()) {
    return wrong("resized", " to " + sizes(resized));
  }
  const std::string whole = compare_whole(goldens, entry, name + ".resized.u8", bytes_of(resized));
  if (sha256(bytes_of(resized)) != expected.at("resized_sha256").get<std::string>())
    return wrong("resized", whole);

  const Image cropped = apply(transform, image);
  if (sha256(bytes_of(cropped)) != expected.at("cropped_sha256").get<std::string>())
    return wrong("cropped", "");

  const FloatTable table(normalisation.at("mean").get<std::array<double, 3>>(),
                         normalisation.at("std").get<std::array<double, 3>>());
  const auto width = static_cast<std::size_t>(cropped.width());
  const auto height = static_cast<std::size_t>(cropped.height());
  const std::vector<std::size_t> shape{3, height, width};
  if (shape != expected.at("tensor_shape").get<std::vector<std::size_t>>()) {
    return wrong("tensor", " of the wrong shape");
  }
  // NaN shows an element that is never written.
  const float unwritten = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> tensor(cropped.bytes(), unwritten);
  table.to_chw(cropped, tensor.data());
  for (const json& sample : expected.at("samples")) {
    const std::size_t at =
        (sample.at(0).get<std::size_t>() * height + sample.at(1).get<std::size_t>()) * width +
        sample.at(2).get<std::size_t>();
    if (tensor[at] != sample.at(3).get<float>()) {
      return wrong("tensor", fmt::format(" is {} where {} is expected", tensor[at], sample.dump()));
    }
  }
  const auto tensor_bytes = std::as_bytes(std::span(tensor));
  const std::string whole_tensor =
      compare_whole(goldens, entry, name + ".tensor.f32", tensor_bytes);
  if (sha256(tensor_bytes) != expected.at("tensor_sha256").get<std::string>())
    return wrong("tensor", whole_tensor);
  if (!whole.empty() || !whole_tensor.empty()) return wrong("whole", whole + whole_tensor);

  std::vector<float> interleaved(cropped.bytes(), unwritten);
  table.to_nhwc(cropped, interleaved.data());
  for (std::size_t i = 0; i < width * height; ++i) {
    for (std::size_t c = 0; c < 3; ++c) {
      if (interleaved[i * 3 + c] != tensor[c * width * height + i]) return wrong("NHWC tensor", "");
    }
  }
  return "";
}

}  // namespace

std::string sha256(std::span<const std::byte> bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("SHA-256 is not to be had");
  }
  std::string text;
  for (unsigned i = 0; i < length; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

ImageGoldens::ImageGoldens(const std::filesystem::path& folder_)
    : folder(folder_),
      manifest(json::parse(std::ifstream(folder_ / "manifest.json"))),
      resize(json::parse(std::ifstream(folder_ / "resize.json"))) {}

Decoded check_decoding(const ImageGoldens& goldens, const json& entry) {
  Decoded result;
  const std::string path = (goldens.folder / entry.at("file").get<std::string>()).string();
  const auto outcome = entry.at("outcome").get<std::string>();
  if (sha256(contents(path)) != entry.at("sha256").get<std::string>()) {
    result.complaint = "the file is not the one of the manifest";
    return result;
  }
  try {
    result.image = read_image(path);
  } catch (const InputError& error) {
    result.refusal = error.what();
    if (outcome == "ok") result.complaint = "refused: " + result.refusal;
    // One line that names the file first and says what to do.
    if (!result.refusal.starts_with(path + ": ") ||
        result.refusal.find("; ") == std::string::npos ||
        result.refusal.find('\n') != std::string::npos) {
      result.complaint = "message not of the agreed form: " + result.refusal;
    }
    return result;
  }
  if (outcome == "corrupt") {
    result.complaint = "decoded to " + sizes(*result.image) + " but must be refused";
    return result;
  }
  if (!entry.contains("rgb_sha256")) {
    result.complaint = "decoded, but no bytes are given that would be right";
    return result;
  }
  const Image& image = *result.image;
  if (image.width() != entry.at("width") || image.height() != entry.at("height")) {
    result.complaint = "decoded to " + sizes(image);
    return result;
  }
  for (const json& sample : entry.at("rgb_samples")) {
    const std::uint8_t* rgb = image.pixel(sample.at(0).get<int>(), sample.at(1).get<int>());
    for (std::size_t c = 0; c < 3; ++c) {
      if (rgb[c] != sample.at(c + 2)) {
        result.complaint = fmt::format("rgb is {} {} {} where {} is expected", rgb[0], rgb[1],
                                       rgb[2], sample.dump());
        return result;
      }
    }
  }
  if (sha256(bytes_of(image)) != entry.at("rgb_sha256").get<std::string>())
    result.complaint = "rgb differs";
  return result;
}

std::string check_transforms(const ImageGoldens& goldens, const json& entry, const Image& image) {
  std::string complaints;
  for (const json& expected : entry.at("tensors")) {
    const auto rgb = expected.at("transform").get<std::string>() + ".rgb.u8";
    complaints += compare_whole(goldens, entry, rgb, bytes_of(image));
    complaints += check_transform(goldens, entry, expected, image);
  }
  return complaints;
}

std::string check_resize(const json& entry) {
  const auto in = entry.at("in").get<std::array<int, 2>>();
  const auto out = entry.at("out").get<std::array<int, 2>>();
  const auto seed = entry.at("seed").get<std::uint64_t>();
  const bool two_level = entry.at("input") == "two_level";
  Image image(in[0], in[1]);
  for (std::size_t i = 0; i < image.bytes(); ++i) {
    const std::uint64_t s = seed + (i + 1) * 0x9E3779B97F4A7C15U;
    std::uint64_t z = (s ^ s >> 30) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27) * 0x94D049BB133111EBU;
    z ^= z >> 31;
    const auto level = static_cast<std::uint8_t>(z >> 56);
    image.data()[i] = !two_level ? level : level >= 128 ? 255 : 0;
  }
  if (sha256(bytes_of(image)) != entry.at("input_sha256").get<std::string>())
    return "the generated input differs";
  const Image result = resize(image, out[0], out[1]);
  if (sha256(bytes_of(result)) == entry.at("output_sha256").get<std::string>()) return "";
  std::vector<int> first;
  for (std::size_t i = 0; i < std::min<std::size_t>(6, result.bytes()); ++i) {
    first.push_back(result.data()[i]);
  }
  return fmt::format("output differs; it begins {}, expected {}", json(first).dump(),
                     entry.at("first").dump());
}

}  // namespace rk::golden
