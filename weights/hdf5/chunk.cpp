#include "weights/hdf5/chunk.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>

namespace rk {
namespace {

// Inflates to at most `most` bytes.
std::vector<std::byte> inflated(const std::vector<std::byte>& from, std::size_t most) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> owner(&stream, inflateEnd);
  std::vector<std::byte> out(most);
  const auto* next = reinterpret_cast<const Bytef*>(from.data());
  stream.next_in = const_cast<Bytef*>(next);
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  std::size_t in_left = from.size(), out_left = out.size();
  constexpr std::size_t kStep = std::numeric_limits<uInt>::max();
  for (int state = Z_OK; state != Z_STREAM_END;) {
    const auto in = static_cast<uInt>(std::min(in_left, kStep));
    const auto room = static_cast<uInt>(std::min(out_left, kStep));
    stream.avail_in = in;
    stream.avail_out = room;
    state = inflate(&stream, Z_NO_FLUSH);
    in_left -= in - stream.avail_in;
    out_left -= room - stream.avail_out;
    const bool moved = stream.avail_in != in || stream.avail_out != room;
    if (state == Z_STREAM_END) break;
    if (state == Z_MEM_ERROR) throw std::bad_alloc();
    if (state != Z_OK && state != Z_BUF_ERROR) throw std::runtime_error("is no deflate stream");
    if (moved) continue;
    throw std::runtime_error(out_left == 0 ? "inflates beyond its size" : "is cut short");
  }
  out.resize(out.size() - out_left);
  return out;
}

// Shuffle stores the first bytes of all elements, then all second bytes, and so on; bytes beyond
// the last whole element stay in place.
std::vector<std::byte> unshuffled(const std::vector<std::byte>& from, std::size_t element) {
  const std::size_t count = element > 0 ? from.size() / element : 0;
  if (element <= 1 || count <= 1) return from;
  std::vector<std::byte> out(from.size());
  for (std::size_t byte = 0; byte < element; ++byte) {
    const std::byte* plane = from.data() + byte * count;
    for (std::size_t i = 0; i < count; ++i) out[i * element + byte] = plane[i];
  }
  std::copy(from.begin() + static_cast<std::ptrdiff_t>(count * element), from.end(),
            out.begin() + static_cast<std::ptrdiff_t>(count * element));
  return out;
}

}  // namespace

std::vector<std::byte> unfold_chunk(std::vector<std::byte> stored,
                                    std::span<const Hdf5Filter> filters, std::uint32_t skipped,
                                    std::size_t bytes) {
  bool deflated_outside = false;  // must this stage's output be inflated again?
  for (std::size_t i = filters.size(); i-- > 0;) {
    if (i < 32 && ((skipped >> i) & 1U) != 0) continue;
    if (filters[i].id == H5Z_FILTER_SHUFFLE) {
      stored = unshuffled(stored, filters[i].element_bytes);
      continue;
    }
    deflated_outside = false;
    for (std::size_t j = 0; j < i; ++j) {
      deflated_outside |= filters[j].id == H5Z_FILTER_DEFLATE && ((skipped >> j) & 1U) == 0;
    }
    stored = inflated(stored, deflated_outside ? compressBound(bytes) : bytes);
  }
  if (stored.size() != bytes) throw std::runtime_error("has another size than the chunks declared");
  return stored;
}

}  // namespace rk
