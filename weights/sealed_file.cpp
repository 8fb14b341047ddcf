#include "weights/sealed_file.h"

#include "engine/error.h"

#include <openssl/evp.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace rk {
namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers are written as they lie in memory");

struct Footer {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t bytes;
  std::uint64_t length;
  std::array<std::uint8_t, 32> digest;
  std::array<std::uint8_t, 8> zeros;
};
static_assert(sizeof(Footer) == kSealBytes && std::is_trivially_copyable_v<Footer>);

constexpr std::array<char, 8> kMagic = {'R', 'K', 'S', 'E', 'A', 'L', 'E', 'D'};
constexpr std::uint32_t kVersion = 1;

}  // namespace

std::array<std::uint8_t, 32> sha256(std::span<const std::byte> bytes) {
  std::array<std::uint8_t, 32> digest{};
  unsigned length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1 ||
      length != digest.size()) {
    throw std::runtime_error("[sha256] the cryptography library failed");
  }
  return digest;
}

std::string hexadecimal(std::span<const std::uint8_t> bytes) {
  std::string out;
  for (const std::uint8_t byte : bytes) out += fmt::format("{:02x}", byte);
  return out;
}

void seal(std::vector<std::byte>& bytes) {
  const Footer footer{kMagic, kVersion, kSealBytes, bytes.size(), sha256(bytes), {}};
  const auto* begin = reinterpret_cast<const std::byte*>(&footer);
  bytes.insert(bytes.end(), begin, begin + sizeof(footer));
}

std::span<const std::byte> unsealed(std::span<const std::byte> file, const std::string& name) {
  Footer footer{};
  if (file.size() >= sizeof(footer)) {
    std::memcpy(&footer, file.data() + file.size() - sizeof(footer), sizeof(footer));
  }
  if (footer.magic != kMagic) {
    fail<InputError>(
        "{}: does not end with a checksum, so it is cut short or no checkpoint of "
        "Rankine; use another checkpoint",
        name);
  }
  if (footer.version != kVersion || footer.bytes != kSealBytes) {
    fail<InputError>("{}: was written by a newer Rankine (seal {}); use that version", name,
                     footer.version);
  }
  if (footer.length != file.size() - sizeof(footer)) {
    fail<InputError>("{}: has {} bytes where it says {}; use another checkpoint", name,
                     file.size() - sizeof(footer), footer.length);
  }
  const auto contents = file.first(static_cast<std::size_t>(footer.length));
  if (sha256(contents) != footer.digest) {
    fail<InputError>(
        "{}: is damaged (its SHA-256 differs from the one it carries); use another "
        "checkpoint",
        name);
  }
  return contents;
}

}  // namespace rk
