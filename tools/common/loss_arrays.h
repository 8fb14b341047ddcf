// The input of a loss from .npy, .npz or safetensors, for tools/common/loss_file.h.
#pragma once

#include "retrieval/files/labels.h"
#include "tools/common/loss_file.h"

#include <cstdint>
#include <functional>
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

// `place`: where an array of that name stands, for messages; empty: it is not there. Throws
// InputError if parts of a memory are there that go with nothing. Says that a loss with proxies
// compares with no rows of earlier batches.
void check_memory_parts(LossKind kind,
                        const std::function<std::string(const std::string& name)>& place);

}  // namespace rk
