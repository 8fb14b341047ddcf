// The protocol between Hdf5Reader and the process that parses a file, packed as in
// engine/base/packed_values.h: the number of the question, then its arguments. No answer is longer
// than a slot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include "weights/hdf5/element_count.h"

namespace rk {

// Bytes of a slot: large enough that waking a process costs little compared with filling the slot.
inline constexpr std::size_t kHdf5SlotBytes = std::size_t{2} << 20;
inline constexpr std::size_t kHdf5MaxRank = 4;

enum class Hdf5Question : std::uint64_t {
  kOpen,              // -> device, inode, bytes, seconds and nanoseconds of change (0 for images)
  kObjects,           // first -> number of all, then from `first` on: path, whether a data set
  kInfo,              // path -> kind, digits, rank, dims, sides of the pieces best read whole; or
                      // kHdf5Unread and why
  kNumbers,           // path, type, boxes (rank offsets and rank sides each) -> their values
  kTexts,             // path, first, byte -> parts of texts from there on: whether it ends, text
  kTextAttribute,     // object, name -> whether it exists, text
  kIntegerAttribute,  // object, name -> whether it exists, value
  kNumberAttribute,   // object, name -> count, bits of doubles
};

// In place of a kind: of a data set that is not read.
inline constexpr std::uint64_t kHdf5Unread = 3;

// The type that numbers are read as.
enum class Hdf5Type : std::uint64_t { kFloat, kDouble, kInt64, kUint8 };

template <class T> Hdf5Type hdf5_type();
template <> inline Hdf5Type hdf5_type<float>() { return Hdf5Type::kFloat; }
template <> inline Hdf5Type hdf5_type<double>() { return Hdf5Type::kDouble; }
template <> inline Hdf5Type hdf5_type<std::int64_t>() { return Hdf5Type::kInt64; }
template <> inline Hdf5Type hdf5_type<std::uint8_t>() { return Hdf5Type::kUint8; }

// A part of a data set, in C order.
struct Hdf5Box {
  std::vector<std::int64_t> offset, sides;
};

inline std::size_t elements_of(const Hdf5Box& box) {
  return static_cast<std::size_t>(element_count(box.sides));
}

// The path as used in questions: from the root, without a slash at the end.
inline std::string hdf5_path(const std::string& path) {
  std::string out = path.empty() || path.front() != '/' ? "/" + path : path;
  while (out.size() > 1 && out.back() == '/') out.pop_back();
  return out;
}

}  // namespace rk
