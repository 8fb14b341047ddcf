#include "weights/tensor_files/element_type.h"

#include <array>

namespace rk {
namespace {

struct Traits {
  std::string_view name;
  int bits;
};

constexpr std::array<Traits, 22> kTraits = {{
    {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
    {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
    {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
    {"I64", 64},        {"U64", 64},
}};

const Traits& traits(ElementType type) { return kTraits[static_cast<std::size_t>(type)]; }

}  // namespace

std::string_view name_of(ElementType type) { return traits(type).name; }
int bits_of(ElementType type) { return traits(type).bits; }

std::optional<ElementType> element_type(std::string_view name) {
  for (std::size_t i = 0; i < kTraits.size(); ++i) {
    if (kTraits[i].name == name) return static_cast<ElementType>(i);
  }
  return std::nullopt;
}

bool is_real(ElementType type) {
  return type == ElementType::kF16 || type == ElementType::kBf16 || type == ElementType::kF32 ||
         type == ElementType::kF64;
}

bool is_integer(ElementType type) {
  switch (type) {
    case ElementType::kBool:
    case ElementType::kU8:
    case ElementType::kI8:
    case ElementType::kI16:
    case ElementType::kU16:
    case ElementType::kI32:
    case ElementType::kU32:
    case ElementType::kI64:
    case ElementType::kU64: return true;
    default: return false;
  }
}

}  // namespace rk
