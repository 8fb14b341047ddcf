// Words in messages that depend on their neighbours: a noun on its count, an article on its noun,
// the unit and the rounding of a size on what it says.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace rk {

// "image" for one, else "images"; "class" and "batch" take "es", "query" becomes "queries".
template <std::integral T> std::string noun_of(T count, std::string_view one) {
  std::string noun(one);
  if (count == 1) return noun;
  if (noun.ends_with('s') || noun.ends_with("tch")) return noun + "es";
  if (noun.ends_with("ry") || noun.ends_with("xy")) {
    noun.pop_back();
    return noun + "ies";
  }
  return noun + "s";
}

// "1 image", "2 images", "1 new class"
template <std::integral T> std::string counted(T count, std::string_view one) {
  return fmt::format("{} {}", count, noun_of(count, one));
}

// "a resnet50", "an inception_v3": by the first letter.
inline std::string with_article(std::string_view name) {
  const bool vowel = !name.empty() && std::string_view("aeiou").find(name[0]) != name.npos;
  return fmt::format("{} {}", vowel ? "an" : "a", name);
}

// What is needed and what there is, for a message that it does not suffice: "1.2 MiB", below one
// "812 KiB". The one rounds up and the other down, so that too little never reads as enough.
inline std::string size_text(std::uint64_t bytes, std::uint64_t rounding) {
  constexpr std::uint64_t kKib = 1 << 10, kMib = 1 << 20;
  if (bytes < kMib) return fmt::format("{} KiB", (bytes + rounding * (kKib - 1)) / kKib);
  const std::uint64_t tenths = (bytes * 10 + rounding * (kMib - 1)) / kMib;
  return fmt::format("{}.{} MiB", tenths / 10, tenths % 10);
}
inline std::string needed_size(std::uint64_t bytes) { return size_text(bytes, 1); }
inline std::string free_size(std::uint64_t bytes) { return size_text(bytes, 0); }

}  // namespace rk
