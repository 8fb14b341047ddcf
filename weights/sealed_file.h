// A file that can be checked for completeness: a footer of 64 bytes gives its length and checksum.
//
//   magic "RKSEALED" | uint32 version 1 | uint32 64 | uint64 length of the rest | sha256 | 8 zeros
//
// HDF5 and h5py open such a file as if the footer were not there. Little-endian.
#pragma once

#include "engine/base/error.h"
#include "engine/system/file_identity.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rk {

constexpr std::size_t kSealBytes = 64;
constexpr std::uint64_t kMostSealedBytes = std::uint64_t{16} << 30;  // limit for files to be read

std::array<std::uint8_t, 32> sha256(std::span<const std::byte> bytes);
std::string hexadecimal(std::span<const std::uint8_t> bytes);

// Whether a file ends in such a footer; false if it cannot be read.
bool is_sealed(const std::string& path);

// The file is whole, but of another version of its format: its run goes on with the Rankine that
// wrote it, and must not be replaced by an earlier state.
class OtherVersion : public InputError {
 public:
  using InputError::InputError;
};

// Appends the footer.
void seal(std::vector<std::byte>& bytes);

struct Seal {
  std::array<std::uint8_t, 32> digest;  // of the whole file, as sha256sum gives
  FileIdentity file;
};

// Reads the file once, without holding it in memory. Throws InputError "<path>: ..." if it cannot
// be read, has no footer, or differs in length or checksum; OtherVersion if a newer Rankine sealed
// it.
Seal check_seal(const std::string& path);

}  // namespace rk
