// Makes numpy's files by hand, also for tests of what they must not hold.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace rk {

// A file of version 1 with `header` unchanged.
inline std::string npy_bytes(const std::string& header, const std::string& data) {
  std::string out("\x93NUMPY\x01\x00", 8);
  out.push_back(static_cast<char>(header.size() & 0xFF));
  out.push_back(static_cast<char>(header.size() >> 8));
  return out + header + data;
}

inline std::string npy_header(const std::string& descr, const std::string& shape) {
  return fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, shape);
}

template <class T> std::string raw_bytes(const std::vector<T>& values) {
  std::string out(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(out.data(), values.data(), out.size());
  return out;
}

inline std::string npy_rows(const std::vector<float>& values, std::size_t rows, std::size_t dim) {
  return npy_bytes(npy_header("<f4", fmt::format("({}, {})", rows, dim)), raw_bytes(values));
}

inline std::string npy_labels(const std::vector<std::int64_t>& labels) {
  return npy_bytes(npy_header("<i8", fmt::format("({},)", labels.size())), raw_bytes(labels));
}

}  // namespace rk
