#include "engine/device/pinned_buffer.h"

#include "engine/base/note.h"

namespace rk {

PinnedBuffer::PinnedBuffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  data_ = Data(page_locked_memory(bytes), Free(true));
  if (data_ != nullptr) return;
  data_ = Data(ordinary_memory(bytes), Free(false));
  note(
      "the system gives no page-locked memory: copies to and from the GPU are slower and may wait "
      "for its work, results are the same; see how much memory this machine or container has left");
}

}  // namespace rk
