#include "weights/tensor_files/tensor_file.h"

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/base/text_of.h"
#include "engine/system/read_file.h"
#include "weights/sealed_file.h"
#include "weights/tensor_files/archive_entries.h"
#include "weights/tensor_files/file_kind.h"
#include "weights/tensor_files/keras_file.h"
#include "weights/tensor_files/safetensors.h"
#include "weights/tensor_files/torch_file.h"

#include <array>
#include <cstdint>
#include <future>
#include <string_view>

namespace rk {
namespace {

constexpr std::size_t kLargeBytes = std::size_t{4} << 20;

using Digest = std::future<std::array<std::uint8_t, 32>>;  // SHA-256 of the file

// Throws InputError that names the format of the file, if known.
[[noreturn]] void refuse_unknown(std::string_view text, const std::string& path) {
  const auto no = [&](const std::string& what) {
    fail<InputError>("{}: {}", printable(path), what);
  };
  if (is_pickle(text)) {
    no("is a pickle, but none of torch.save(); save it with torch.save(model.state_dict(), FILE)");
  }
  if (const std::string other = other_kind(text); !other.empty()) no(other);
  no("is no file of weights that is known (PyTorch .pth, safetensors, Keras .h5, Rankine .h5); "
     "give one of these");
  throw std::logic_error("unreachable");
}

// Keras 3 may also save weights as arrays of numpy, or in several files.
void refuse_other_keras(const std::map<std::string, ArchiveEntry>& entries,
                        const std::string& path) {
  const auto has = [&](const char* entry) { return entries.contains(entry); };
  if (!has("config.json") || !has("metadata.json") || has(kKerasWeights)) return;
  const char* kind = has("model.weights.npz")    ? " with weights as arrays of numpy"
                     : has("model.weights.json") ? " with weights in several files"
                                                 : "";
  fail<InputError>(
      "{}: is a Keras archive{}, without {}; save the weights alone: "
      "model.save_weights('x.weights.h5')",
      printable(path), kind, kKerasWeights);
}

// Waits for the digest before the HDF5 library starts: it works in a fork
// (engine/system/parser_process.h), where what another thread holds at that moment stays held.
TensorFile read(const std::shared_ptr<const std::vector<std::byte>>& owner, const std::string& path,
                const TensorFileOptions& options, const Digest& digest) {
  const std::span<const std::byte> bytes(*owner);
  const std::string_view text = text_of(bytes);
  if (is_zip(text)) {
    const auto entries = archive_entries(bytes, ArchiveKind::kZip, options.check_crc, path);
    refuse_other_keras(entries, path);
    if (!entries.contains(kKerasWeights)) return read_torch_zip(entries, owner, path);
    digest.wait();
    return read_keras_zip(entries, bytes.size(), path);
  }
  if (is_torch_stream(bytes)) return read_torch_stream(bytes, owner, path);
  if (is_hdf5(text)) {
    digest.wait();
    return read_keras_hdf5(bytes, path);
  }
  // Its header may hold a tar archive's mark in the place where that has it.
  if (is_safetensors(text)) return read_safetensors(bytes, owner, path);
  if (is_tar(text)) return read_torch_tar(bytes, owner, path);
  refuse_unknown(text, path);
}

}  // namespace

void refuse(const std::string& path, const std::string& what) {
  fail<InputError>("{}: {}", printable(path), what);
}

void refuse(const TensorFile& file, const std::string& what) { refuse(file.path, what); }

TensorFile read_tensor_file(const std::string& path, const TensorFileOptions& options) {
  return read_tensors(read_file(path, kMaxTensorFileBytes), path, options);
}

TensorFile read_tensors(std::vector<std::byte> bytes, const std::string& path,
                        const TensorFileOptions& options) {
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  // The digest takes as long as everything else together.
  const bool large = owner->size() > kLargeBytes;
  const std::launch beside = large ? std::launch::async : std::launch::deferred;
  Digest digest = std::async(beside | std::launch::deferred,  // also if there is no thread for it
                             [&owner] { return sha256(*owner); });
  TensorFile file = read(owner, path, options, digest);
  file.bytes = owner->size();
  file.sha256 = hexadecimal(digest.get());
  return file;
}

}  // namespace rk
