#include "tools/common/shared_bad.h"

#include "engine/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>

namespace rk {

std::vector<BadImage> SharedBadImages::with(const std::vector<BadImage>& mine) const {
  std::vector<BadImage> all = all_;
  std::copy_if(mine.begin(), mine.end(), std::back_inserter(all),
               [this](const BadImage& image) { return !known_.contains(image.index); });
  return all;
}

const std::vector<BadImage>& SharedBadImages::gather(const std::vector<BadImage>& mine) {
  std::vector<std::int64_t> fresh;
  for (const BadImage& image : mine) {
    if (!known_.contains(image.index)) fresh.push_back(image.index);
  }
  constexpr std::int64_t kNone = -1;
  fresh.resize(static_cast<std::size_t>(processes_.all_reduce_max(static_cast<int>(fresh.size()))),
               kNone);
  std::vector<std::int64_t> of_all(fresh.size() * static_cast<std::size_t>(processes_.size()));
  if (of_all.empty()) return all_;
  processes_.all_gather<std::int64_t>(fresh, of_all);
  for (const std::int64_t index : of_all) {
    if (index != kNone && known_.insert(index).second) all_.push_back(described(index, mine));
  }
  return all_;
}

// Reads a bad picture of another process again, to obtain the reason.
BadImage SharedBadImages::described(std::int64_t index, const std::vector<BadImage>& mine) const {
  const auto met = std::find_if(mine.begin(), mine.end(),
                                [&](const BadImage& image) { return image.index == index; });
  if (met != mine.end()) return *met;
  const std::string name = data_.item_name(index);
  std::string reason = fmt::format("{}: another process could not read it", name);
  if (!processes_.first()) return {index, name, reason};
  try {
    data_.load(index);
  } catch (const InputError& error) {
    reason = error.what();
  }
  return {index, name, reason};
}

}  // namespace rk
