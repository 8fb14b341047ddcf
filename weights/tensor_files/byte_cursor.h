// Reads bytes from front to back, never beyond their end.
#pragma once

#include "weights/tensor_files/pickle.h"

#include <cstdint>
#include <cstring>

namespace rk {

class ByteCursor {
 public:
  // `name` is the file's, for messages.
  ByteCursor(std::span<const std::byte> bytes, std::string name)
      : rest_(bytes), name_(std::move(name)) {}

  // A little-endian number. Throws InputError if too few bytes are left.
  template <class T> T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::span<const std::byte> take(std::uint64_t bytes);
  Pickle pickle();

 private:
  std::span<const std::byte> rest_;
  std::string name_;
};

}  // namespace rk
