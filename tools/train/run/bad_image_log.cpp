#include "tools/train/run/bad_image_log.h"

#include "engine/base/error.h"
#include "engine/system/read_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>

namespace rk {

std::vector<BadImage> BadImageLog::still_bad(const std::vector<std::int64_t>& recorded) const {
  std::vector<BadImage> bad;
  for (const std::int64_t index : recorded) {
    if (index < 0 || index >= data_.size()) continue;
    try {
      data_.load(index);
    } catch (const SystemError&) {
      throw;  // the picture may be readable
    } catch (const InputError& error) {
      bad.push_back({index, data_.item_name(index), error.what()});
    }
  }
  return bad;
}

void BadImageLog::share(const std::vector<BadImage>& mine) {
  std::vector<std::int64_t> fresh;
  for (const BadImage& image : mine) {
    if (!known_.contains(image.index)) fresh.push_back(image.index);
  }
  constexpr std::int64_t kNone = -1;
  fresh.resize(static_cast<std::size_t>(processes_.all_reduce_max(static_cast<int>(fresh.size()))),
               kNone);
  std::vector<std::int64_t> of_all(fresh.size() * static_cast<std::size_t>(processes_.size()));
  if (of_all.empty()) return;
  processes_.all_gather<std::int64_t>(fresh, of_all);
  for (const std::int64_t index : of_all) {
    if (index != kNone && known_.insert(index).second) shared_.push_back(described(index, mine));
  }
}

void BadImageLog::require_few(std::int64_t max_bad) const {
  require_few_bad(data_, shared_, allowed_bad(max_bad, data_.size()));
}

std::vector<std::int64_t> BadImageLog::indices(const std::vector<BadImage>& mine) const {
  std::vector<std::int64_t> all;
  for (const BadImage& image : with(mine)) all.push_back(image.index);
  return all;
}

std::vector<std::string> BadImageLog::list(const std::vector<BadImage>& mine) {
  return list_.update(with(mine));
}

std::vector<BadImage> BadImageLog::with(const std::vector<BadImage>& mine) const {
  std::vector<BadImage> all = shared_;
  std::copy_if(mine.begin(), mine.end(), std::back_inserter(all),
               [this](const BadImage& image) { return !known_.contains(image.index); });
  return all;
}

// Reads a bad picture of another process again, to obtain the reason.
BadImage BadImageLog::described(std::int64_t index, const std::vector<BadImage>& mine) const {
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
