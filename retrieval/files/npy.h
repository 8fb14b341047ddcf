// numpy's .npy, versions 1 to 3: one array of numbers or texts in either order and byte order.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
//   "\x93NUMPY" | version, two bytes | length of the header: uint16 (1.x) or uint32 | header, a
//   Python dictionary of descr, fortran_order and shape as text | the elements
//
// Pickled objects (descr "|O"), records, complex numbers, dates and long doubles are refused; their
// elements are never read.
#pragma once

#include "retrieval/files/stored_array.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace rk {

bool is_npy(std::span<const std::byte> bytes);

// `bytes` must outlive the result, or be kept alive by `owner`. Throws InputErrors whose messages
// begin with `name`.
StoredArray read_npy(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                     const std::string& name);

}  // namespace rk
