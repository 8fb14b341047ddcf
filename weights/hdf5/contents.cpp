#include "weights/hdf5/contents.h"

#include <fmt/format.h>

#include <algorithm>

namespace rk {

std::string what_it_holds(const Hdf5Reader& file) {
  constexpr std::size_t kMost = 8;
  const std::vector<std::string> names = file.datasets("/");
  if (names.empty()) return "it holds no data set";
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kMost));
  return fmt::format("it holds {}{}", fmt::join(names.begin(), end, ", "),
                     names.size() > kMost ? ", ..." : "");
}

}  // namespace rk
