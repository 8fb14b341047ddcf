#include "weights/tensor_files/byte_cursor.h"

#include "engine/base/error.h"
#include "engine/base/printable.h"

namespace rk {

std::span<const std::byte> ByteCursor::take(std::uint64_t bytes) {
  if (bytes > rest_.size()) {
    fail<InputError>("{}: {} bytes are wanted where {} are left: it was cut off, download it again",
                     printable(name_), bytes, rest_.size());
  }
  const std::span<const std::byte> taken = rest_.first(bytes);
  rest_ = rest_.subspan(bytes);
  return taken;
}

Pickle ByteCursor::pickle() {
  Pickle pickle(rest_, name_);
  rest_ = rest_.subspan(pickle.bytes());
  return pickle;
}

}  // namespace rk
