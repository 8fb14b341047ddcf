#include "weights/sealed_file.h"

#include "engine/base/error.h"
#include "engine/system/read_file.h"

#include <openssl/evp.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <stdexcept>
#include <type_traits>

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
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    require(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
  }
  void add(std::span<const std::byte> bytes) {
    require(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
  }
  // The digest of the bytes added so far; more may be added afterwards.
  std::array<std::uint8_t, 32> digest() const {
    const Sha256 until_here(*this);
    std::array<std::uint8_t, 32> digest{};
    unsigned length = 0;
    require(EVP_DigestFinal_ex(until_here.context_.get(), digest.data(), &length) == 1 &&
            length == digest.size());
    return digest;
  }

 private:
  Sha256(const Sha256& other) : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    require(context_ != nullptr && EVP_MD_CTX_copy_ex(context_.get(), other.context_.get()) == 1);
  }
  static void require(bool done) {
    if (!done) throw std::runtime_error("[sha256] the cryptography library failed");
  }

  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

}  // namespace

std::array<std::uint8_t, 32> sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.digest();
}

std::string hexadecimal(std::span<const std::uint8_t> bytes) {
  std::string out;
  for (const std::uint8_t byte : bytes) out += fmt::format("{:02x}", byte);
  return out;
}

bool is_sealed(const std::string& path) {
  std::array<char, kMagic.size()> magic{};
  try {
    const RegularFile file(path, std::numeric_limits<std::uint64_t>::max());
    if (file.bytes() < kSealBytes) return false;
    file.read(file.bytes() - kSealBytes, std::as_writable_bytes(std::span(magic)));
  } catch (const InputError&) {
    return false;  // the next reader reports the error
  }
  return magic == kMagic;
}

void seal(std::vector<std::byte>& bytes) {
  const Footer footer{kMagic, kVersion, kSealBytes, bytes.size(), sha256(bytes), {}};
  const auto* begin = reinterpret_cast<const std::byte*>(&footer);
  bytes.insert(bytes.end(), begin, begin + sizeof(footer));
}

Seal check_seal(const std::string& path) {
  const RegularFile file(path, kMostSealedBytes);
  Footer footer{};
  if (file.bytes() >= sizeof footer) {
    file.read(file.bytes() - sizeof footer, std::as_writable_bytes(std::span(&footer, 1)));
  }
  if (footer.magic != kMagic) {
    fail<InputError>(
        "{}: does not end with a checksum, so it is cut short or no checkpoint of "
        "Rankine; use another checkpoint",
        path);
  }
  if (footer.version != kVersion || footer.bytes != kSealBytes) {
    fail<OtherVersion>("{}: was written by a newer Rankine (seal {}); use that version", path,
                       footer.version);
  }
  if (footer.length != file.bytes() - sizeof footer) {
    fail<InputError>("{}: has {} bytes where it says {}; use another checkpoint", path,
                     file.bytes() - sizeof footer, footer.length);
  }
  Sha256 hash;
  std::vector<std::byte> piece(kPieceBytes);
  for (std::uint64_t at = 0; at < footer.length; at += piece.size()) {
    piece.resize(std::min<std::uint64_t>(kPieceBytes, footer.length - at));
    file.read(at, piece);
    hash.add(piece);
  }
  if (hash.digest() != footer.digest) {
    fail<InputError>(
        "{}: is damaged (its SHA-256 differs from the one it carries); use another "
        "checkpoint",
        path);
  }
  hash.add(std::as_bytes(std::span(&footer, 1)));
  return {hash.digest(), file.identity()};
}

}  // namespace rk
