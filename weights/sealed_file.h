// A file that knows whether it is whole: 64 bytes at its end say how long it is and what it holds.
//
//   magic "RKSEALED" | uint32 version 1 | uint32 64 | uint64 length of the rest | sha256 | 8 zeros
//
// HDF5 and h5py open such a file as if the footer were not there. Little-endian.
#pragma once

#include "engine/system/file_identity.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rk {

constexpr std::size_t kSealBytes = 64;
constexpr std::uint64_t kMostSealedBytes = std::uint64_t{16} << 30;  // of a file that is read

std::array<std::uint8_t, 32> sha256(std::span<const std::byte> bytes);
std::string hexadecimal(std::span<const std::uint8_t> bytes);

// Does a file end as one of these? False for what cannot be read.
bool is_sealed(const std::string& path);

// Appends the footer.
void seal(std::vector<std::byte>& bytes);

struct Seal {
  std::array<std::uint8_t, 32> digest;  // of the whole file, as others compute it
  FileIdentity file;
};

// Reads the file once, without holding it in memory. InputError "<path>: ..." where it cannot be
// read or has no footer, and where length or checksum differ.
Seal check_seal(const std::string& path);

}  // namespace rk
