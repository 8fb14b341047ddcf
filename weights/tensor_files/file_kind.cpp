#include "weights/tensor_files/file_kind.h"

#include "engine/base/lower_case.h"

namespace rk {
namespace {

constexpr std::string_view kZip = "PK\x03\x04";
constexpr std::string_view kEmptyZip = "PK\x05\x06";
constexpr std::string_view kHdf5 = "\x89HDF\r\n\x1a\n";

// A protobuf that begins with ModelProto's fields: ir_version, then opset_import (8), producer_name
// (2) or graph (7), whose tags are bytes of their own.
bool is_onnx(std::string_view text) {
  return text.size() > 3 && text[0] == '\x08' && text[1] > 0 && text[1] < 32 &&
         (text[2] == '\x12' || text[2] == '\x3a' || text[2] == '\x42');
}

}  // namespace

bool is_zip(std::string_view text) { return text.starts_with(kZip) || text.starts_with(kEmptyZip); }

bool is_hdf5(std::string_view text) {
  // The signature may follow a user block: at 0, 512, 1024, 2048, ...
  for (std::size_t at = 0; at + kHdf5.size() <= text.size(); at = at == 0 ? 512 : 2 * at) {
    if (text.substr(at, kHdf5.size()) == kHdf5) return true;
  }
  return false;
}

bool is_tar(std::string_view text) { return text.size() > 262 && text.substr(257, 5) == "ustar"; }

// A length, whose eight bytes are never those of a text, then JSON.
bool is_safetensors(std::string_view text) {
  if (text.size() < 9 || text.substr(0, 8).find('\0') == text.npos) return false;
  const std::size_t json = text.find_first_not_of(" \t\r\n", 8);
  return json != std::string_view::npos && text[json] == '{';
}

bool is_pickle(std::string_view text) {
  return text.size() >= 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5;
}

std::string other_kind(std::string_view text) {
  const std::string start = lower_case(std::string(text.substr(0, 512)));
  const std::size_t first = start.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  const std::string_view front =
      first == std::string::npos ? std::string_view() : std::string_view(start).substr(first);
  if (text.empty()) return "is empty; download it again";
  if (front.starts_with("<!doctype") || front.starts_with("<html") || front.starts_with("<?xml")) {
    return "is a web page; the download was answered with a page: open it to see why";
  }
  if (front.starts_with("version https://git-lfs")) {
    return "is a pointer of git-lfs, not the file itself; run `git lfs pull` where it comes from";
  }
  if (front.starts_with('{') && text.find("\"weight_map\"") != text.npos) {
    return "is the index of a model in several files; join the tensors that it names in one file";
  }
  if (is_onnx(text)) {
    return "is an ONNX graph, which is written and not read; give the checkpoint (best.h5) or the "
           "weights that it was made of";
  }
  if (front.starts_with("\x1f\x8b")) return "is compressed by gzip; unpack it first";
  return "";
}

}  // namespace rk
