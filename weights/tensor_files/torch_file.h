// The three containers of torch.save(). `bytes`, and the archive that `entries` are views of, must
// outlive the result or be kept alive by `owner`; `name` is for messages. Throws InputError.
#pragma once

#include "weights/tensor_files/archive_entries.h"
#include "weights/tensor_files/tensor_file.h"

#include <cstdint>

namespace rk {

inline constexpr std::int32_t kMaxTorchRank = 16;  // of a tensor

// PyTorch 1.6 and later: a zip archive of <root>/data.pkl and one record <root>/data/<key> per
// storage.
TensorFile read_torch_zip(const std::map<std::string, ArchiveEntry>& entries,
                          const std::shared_ptr<const void>& owner, const std::string& name);

// PyTorch 0.2 to 1.5: five pickles (magic number, protocol, system, the object, storages' keys),
// then for each key the number of elements (int64) and the elements.
TensorFile read_torch_stream(std::span<const std::byte> bytes,
                             const std::shared_ptr<const void>& owner, const std::string& name);
bool is_torch_stream(std::span<const std::byte> bytes);

// PyTorch 0.1: a tar archive of `pickle`, `tensors` and `storages`.
TensorFile read_torch_tar(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                          const std::string& name);

}  // namespace rk
