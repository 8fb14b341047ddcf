// Unpacks a stored chunk of an HDF5 data set without the library, which would inflate a stream to
// its end however long that is.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rk {

struct Hdf5Filter {
  H5Z_filter_t id = 0;            // H5Z_FILTER_DEFLATE or H5Z_FILTER_SHUFFLE
  std::size_t element_bytes = 1;  // for shuffle
};

// `stored` was packed by `filters` in their order, except those whose bit is set in `skipped`.
// Throws std::runtime_error unless exactly `bytes` result; more than that is never allocated.
std::vector<std::byte> unfold_chunk(std::vector<std::byte> stored,
                                    std::span<const Hdf5Filter> filters, std::uint32_t skipped,
                                    std::size_t bytes);

}  // namespace rk
