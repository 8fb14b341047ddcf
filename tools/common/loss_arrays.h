// The input of a loss from .npy, .npz or safetensors, for tools/common/loss_file.h.
#pragma once

#include "retrieval/files/labels.h"
#include "tools/common/loss_file.h"

#include <cstdint>
#include <string>
#include <vector>

namespace rk {

template <class S>
LossData<S> read_loss_arrays(const std::string& path, LossKind kind, const std::string& labels);

// The targets of scores. Throws InputError, which begins with `from`, if one is neither 0 nor 1.
std::vector<std::uint8_t> targets_of(const std::vector<std::int64_t>& values,
                                     const std::string& from);

// Throws InputError, which begins with `from`, if a matrix of similarities of these rows is too
// large.
void check_batch_rows(std::int64_t rows, const std::string& from);

// Throws InputError, which begins with `from`, if labels are `names` where numbers are needed:
// beside `others`.
void refuse_names(bool names, const std::string& from, const std::string& others);

// Throws InputError, which begins with `from`: it is of memory whose embeddings are not there.
[[noreturn]] void refuse_memory_part(const std::string& from);

// Throws InputError, which begins with `from`: the memory's pictures are numbered, the batch's not.
[[noreturn]] void refuse_memory_identities(const std::string& from);

// Says that a loss of proxies compares with no rows of earlier batches, which are in `from`.
void note_memory_unread(const std::string& from);

}  // namespace rk
