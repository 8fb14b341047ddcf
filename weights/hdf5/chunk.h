// What a stored chunk of an HDF5 data set unfolds to, without the library, which inflates a stream
// to its end however long that is.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rk {

struct Hdf5Filter {
  H5Z_filter_t id = 0;            // H5Z_FILTER_DEFLATE or H5Z_FILTER_SHUFFLE
  std::size_t element_bytes = 1;  // of shuffle
};

// `stored` went through `filters` in their order, but for those whose bit is set in `skipped`.
// Exactly `bytes` must come out; std::runtime_error says what does not fit, before memory for more
// than that is taken.
std::vector<std::byte> unfold_chunk(std::vector<std::byte> stored,
                                    std::span<const Hdf5Filter> filters, std::uint32_t skipped,
                                    std::size_t bytes);

}  // namespace rk
