// Words in messages that depend on their neighbours: a noun on its count, an article on its noun,
// the unit of a size on its number.
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

// "3.1 MiB", below one "812 KiB".
inline std::string size_text(std::uint64_t bytes) {
  if (bytes < (std::uint64_t{1} << 20)) return fmt::format("{} KiB", (bytes + 1023) / 1024);
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace rk
