#include "engine/device/buffer.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"

#include <sys/mman.h>

#include <cstdlib>

namespace rk {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace

Buffer::Buffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const bool large = bytes >= 2 * kHugePage;
  const std::size_t alignment = large ? kHugePage : kAlignment;
  data_ = std::aligned_alloc(alignment, round_up(bytes, alignment));
  if (data_ == nullptr) {
    fail<OutOfMemory>(
        "out of memory: {} MiB were asked for; end what else runs here or raise the limit (ulimit "
        "-v)",
        bytes >> 20);
  }
  // Advice only: where huge pages are off the call changes nothing.
  if (large) (void)madvise(data_, round_up(bytes, alignment), MADV_HUGEPAGE);
}

Buffer::~Buffer() { std::free(data_); }

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace rk
