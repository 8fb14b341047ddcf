#include "retrieval/files/npy.h"

#include "engine/base/error.h"
#include "engine/base/number_in.h"
#include "engine/base/printable.h"

#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

namespace rk {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxHeader = std::size_t{1} << 20;

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

[[noreturn]] void refuse_npy(const std::string& name, const std::string& what) {
  fail<InputError>("{}: {}", name, what);
}

[[noreturn]] void malformed(const std::string& name, const std::string& what) {
  refuse_npy(name, fmt::format("as .npy: {}; it is damaged, save or copy it again", what));
}

// Parses the header's dictionary token by token; never evaluates it.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, std::string name) : rest_(text), name_(std::move(name)) {}

  Header read() {
    Header header;
    std::array<bool, 3> seen{};
    const auto once = [&](std::size_t which, const std::string& key) {
      if (std::exchange(seen[which], true)) bad("'" + key + "' stands there twice");
    };
    expect_one('{');
    while (!take('}')) {
      const std::string key = text();
      expect_one(':');
      if (key == "descr") {
        once(0, key);
        if (next() == '[') {
          refuse_npy(name_, "holds records of several fields; save the embeddings as one array");
        }
        header.descr = text();
      } else if (key == "fortran_order") {
        once(1, key);
        header.fortran_order = boolean();
      } else if (key == "shape") {
        once(2, key);
        header.shape = shape();
      } else {
        bad("the unknown key " + in_quotes(key));
      }
      if (take(',')) continue;
      expect_one('}');
      break;
    }
    if (next() != '\0') bad("text behind its end");
    if (!seen[0] || !seen[1] || !seen[2]) bad("no descr, fortran_order or shape");
    return header;
  }

 private:
  [[noreturn]] void bad(const std::string& what) const {
    malformed(name_, "its header holds " + what);
  }

  // Skips blanks and returns the next character without consuming it; '\0' at the end.
  char next() {
    const std::size_t at = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(at == std::string_view::npos ? rest_.size() : at);
    if (rest_.empty()) return '\0';
    return rest_.front() == '\0' ? '?' : rest_.front();
  }
  bool take(char c) {
    if (next() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect_one(char c) {
    if (!take(c)) bad(fmt::format("no '{}' where one belongs", c));
  }
  std::string text() {
    const char quote = next();
    if (quote != '\'' && quote != '"') bad("no text where one belongs");
    const std::size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) bad("a text without an end");
    std::string out(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return out;
  }
  bool word(std::string_view expected) {
    next();
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }
  bool boolean() {
    if (word("True")) return true;
    if (!word("False")) bad("a fortran_order that is neither True nor False");
    return false;
  }
  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> out;
    expect_one('(');
    while (!take(')')) {
      next();
      std::int64_t side = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), side);
      if (error != std::errc() || side < 0) bad("a shape that is no list of whole numbers");
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      word("L");  // Python 2
      out.push_back(side);
      if (out.size() > 32) bad("more than 32 dimensions");
      if (take(',')) continue;
      expect_one(')');
      break;
    }
    return out;
  }

  std::string_view rest_;
  std::string name_;
};

// numpy's names of number types: in descr, and in words.
struct NumberName {
  std::string_view descr, words;
  ElementType type;
};
constexpr std::array<NumberName, 12> kNumbers = {{
    {"f2", "float16", ElementType::kF16},
    {"f4", "float32", ElementType::kF32},
    {"f8", "float64", ElementType::kF64},
    {"i1", "int8", ElementType::kI8},
    {"i2", "int16", ElementType::kI16},
    {"i4", "int32", ElementType::kI32},
    {"i8", "int64", ElementType::kI64},
    {"u1", "uint8", ElementType::kU8},
    {"u2", "uint16", ElementType::kU16},
    {"u4", "uint32", ElementType::kU32},
    {"u8", "uint64", ElementType::kU64},
    {"b1", "bool", ElementType::kBool},
}};

// Sets dtype and the elements' type and byte order; returns the bytes of one element.
std::uint64_t read_type(const std::string& descr, StoredArray& array, const std::string& name) {
  std::string_view type = descr;
  if (!type.empty() && std::string_view("<>=|").find(type.front()) != std::string_view::npos) {
    array.tensor.big_endian = type.front() == '>';
    type.remove_prefix(1);
  }
  if (type.starts_with('O')) {
    refuse_npy(
        name,
        "holds pickled Python objects, and a pickle can run programs: it is never loaded; save "
        "numbers (numpy: .astype('float32')) or texts (.astype(str))");
  }
  for (const NumberName& number : kNumbers) {
    if (type != number.descr) continue;
    array.tensor.type = number.type;
    array.dtype = number.words;
    return static_cast<std::uint64_t>(bits_of(number.type)) / 8;
  }
  if (type.starts_with('U') || type.starts_with('S')) {
    const bool wide = type.front() == 'U';
    const auto units = number_in<decltype(TextLayout::units)>(type.substr(1));
    if (units && *units > 0 && *units <= (1 << 20)) {
      array.text = TextLayout{.units = *units, .wide = wide};
      array.dtype = descr;
      return static_cast<std::uint64_t>(*units) * (wide ? 4 : 1);
    }
  }
  refuse_npy(name,
             fmt::format("holds elements of the type {}; save floating-point numbers, integers "
                         "or texts (numpy: .astype('float32'))",
                         in_quotes(descr)));
}

}  // namespace

bool is_npy(std::span<const std::byte> bytes) {
  return bytes.size() >= kMagic.size() &&
         std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

StoredArray read_npy(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                     const std::string& name) {
  const auto cut_off = [&] { malformed(name, "it was cut off within its header"); };
  if (bytes.size() < kMagic.size() + 4) cut_off();
  const auto byte_at = [&](std::size_t i) { return std::to_integer<std::size_t>(bytes[i]); };
  const std::size_t version = byte_at(6);
  if (version < 1 || version > 3) {
    refuse_npy(name,
               fmt::format("is .npy of version {}.{}, known are 1 to 3; save it by a numpy of "
                           "today",
                           version, byte_at(7)));
  }
  std::size_t begin = 10;
  std::size_t length = byte_at(8) | (byte_at(9) << 8);
  if (version > 1) {
    begin = 12;
    if (bytes.size() < begin) cut_off();
    length |= (byte_at(10) << 16) | (byte_at(11) << 24);
  }
  if (length > kMaxHeader) malformed(name, fmt::format("a header of {} bytes", length));
  if (length > bytes.size() - begin) cut_off();
  const std::string text(reinterpret_cast<const char*>(bytes.data()) + begin, length);
  const Header header = HeaderReader(text, name).read();

  StoredArray array;
  std::uint64_t size = read_type(header.descr, array, name);
  for (const std::int64_t side : header.shape) {
    if (__builtin_mul_overflow(size, static_cast<std::uint64_t>(side), &size) ||
        size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      malformed(name, "it claims more elements than can be counted");
    }
  }
  array.tensor.dims = header.shape;
  array.tensor.owner = std::move(owner);
  const std::span<const std::byte> data = bytes.subspan(begin + length);
  if (data.size() != size) {
    malformed(name, fmt::format("{} of {} bytes in a file that has {} for it", text_of(array), size,
                                data.size()));
  }
  array.tensor.bytes = data;
  if (header.fortran_order && header.shape.size() > 1 && size > 0) {
    std::int64_t stride = 1;
    for (const std::int64_t side : header.shape) {
      array.tensor.strides.push_back(stride);
      stride *= side;
    }
    array.column_major = true;
  }
  return array;
}

}  // namespace rk
