// Numbers and texts packed one after another into bytes, for exchange between processes of one
// program: a number takes 8 bytes in native byte order, a text its length and then its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string_view>

namespace rk {

// Writes into a span of fixed size; throws std::length_error beyond its end.
class PackedWriter {
 public:
  explicit PackedWriter(std::span<std::byte> to) : to_(to) {}

  std::size_t bytes() const { return bytes_; }
  std::size_t room() const { return to_.size() - bytes_; }

  void number(std::uint64_t value) { raw(&value, sizeof value); }
  void text(std::string_view value) {
    number(value.size());
    raw(value.data(), value.size());
  }

 private:
  void raw(const void* from, std::size_t bytes) {
    if (bytes > room()) throw std::length_error("[packed] no room");
    if (bytes > 0) std::memcpy(to_.data() + bytes_, from, bytes);
    bytes_ += bytes;
  }

  std::span<std::byte> to_;
  std::size_t bytes_ = 0;
};

// Accepts any bytes; throws std::out_of_range if they end too soon.
class PackedReader {
 public:
  explicit PackedReader(std::span<const std::byte> from) : from_(from) {}

  bool at_end() const { return from_.empty(); }

  std::uint64_t number() {
    std::uint64_t value = 0;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  std::string_view text() {
    const std::uint64_t size = number();
    return {reinterpret_cast<const char*>(take(size)), static_cast<std::size_t>(size)};
  }

 private:
  const std::byte* take(std::uint64_t bytes) {
    if (bytes > from_.size()) throw std::out_of_range("[packed] too short");
    const std::byte* at = from_.data();
    from_ = from_.subspan(static_cast<std::size_t>(bytes));
    return at;
  }

  std::span<const std::byte> from_;
};

}  // namespace rk
