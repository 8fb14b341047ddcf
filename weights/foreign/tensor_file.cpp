#include "weights/foreign/tensor_file.h"

#include "engine/error.h"
#include "engine/read_file.h"
#include "weights/foreign/keras_file.h"
#include "weights/foreign/safetensors.h"
#include "weights/foreign/torch_file.h"
#include "weights/printable.h"
#include "weights/sealed_file.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace rk {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{16} << 30;
constexpr std::string_view kZip = "PK\x03\x04";
constexpr std::string_view kEmptyZip = "PK\x05\x06";
constexpr std::string_view kHdf5 = "\x89HDF\r\n\x1a\n";

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_hdf5(std::string_view text) {
  // The signature may stand behind a block of the user's: at 0, 512, 1024, 2048, ...
  for (std::size_t at = 0; at + kHdf5.size() <= text.size(); at = at == 0 ? 512 : 2 * at) {
    if (text.substr(at, kHdf5.size()) == kHdf5) return true;
  }
  return false;
}

bool is_tar(std::string_view text) { return text.size() > 262 && text.substr(257, 5) == "ustar"; }

// A length that fits, and JSON behind it.
bool is_safetensors(std::string_view text) {
  if (text.size() < 9) return false;
  const std::size_t json = text.find_first_not_of(" \t\r\n", 8);
  return json != std::string_view::npos && text[json] == '{';
}

// What it is instead, where that can be told.
[[noreturn]] void refuse(std::string_view text, const std::string& path) {
  const auto no = [&](const char* what) { fail<InputError>("{}: {}", printable(path), what); };
  std::string start(text.substr(0, 512));
  std::transform(start.begin(), start.end(), start.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::size_t first = start.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  const std::string_view front =
      first == std::string::npos ? std::string_view() : std::string_view(start).substr(first);
  if (text.empty()) no("is empty; download it again");
  if (front.starts_with("<!doctype") || front.starts_with("<html") || front.starts_with("<?xml")) {
    no("is a web page, not weights; the download was answered with a page: open it to see why");
  }
  if (front.starts_with("version https://git-lfs")) {
    no("is a pointer of git-lfs, not the file itself; run `git lfs pull` where it comes from");
  }
  if (front.starts_with("\x1f\x8b")) no("is compressed by gzip; unpack it first");
  if (text.size() >= 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5) {
    no("is a pickle, but none of torch.save(); save it with torch.save(model.state_dict(), FILE)");
  }
  no("is no file of weights that is known (PyTorch .pth, safetensors, Keras .h5, Rankine .h5); "
     "give one of these");
  throw std::logic_error("unreachable");
}

bool holds_keras(std::span<const std::byte> bytes) {
  // Names of a zip archive stand in its directory as they are.
  return text_of(bytes).find("model.weights.h5") != std::string_view::npos;
}

TensorFile read(const std::shared_ptr<const std::vector<std::byte>>& owner, const std::string& path,
                const TensorFileOptions& options) {
  const std::span<const std::byte> bytes(*owner);
  const std::string_view text = text_of(bytes);
  if (text.starts_with(kZip) || text.starts_with(kEmptyZip)) {
    return holds_keras(bytes) ? read_keras_zip(bytes, path, options)
                              : read_torch_zip(bytes, owner, path, options);
  }
  if (is_torch_stream(bytes)) return read_torch_stream(bytes, owner, path);
  if (is_hdf5(text)) return read_keras_hdf5(bytes, path);
  if (is_tar(text)) return read_torch_tar(bytes, owner, path);
  if (is_safetensors(text)) return read_safetensors(bytes, owner, path);
  refuse(text, path);
}

}  // namespace

TensorFile read_tensor_file(const std::string& path, const TensorFileOptions& options) {
  return read_tensors(read_file(path, kMaxFileBytes), path, options);
}

TensorFile read_tensors(std::vector<std::byte> bytes, const std::string& path,
                        const TensorFileOptions& options) {
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  TensorFile file = read(owner, path, options);
  file.bytes = owner->size();
  file.sha256 = hexadecimal(sha256(*owner));
  return file;
}

}  // namespace rk
