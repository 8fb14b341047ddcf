#include "engine/base/nearest.h"

#include "engine/base/error.h"
#include "engine/base/lower_case.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace rk {
namespace {

// Keeps a flag's leading dashes.
std::string folded(std::string_view text) {
  std::string result = lower_case(std::string(text));
  const std::size_t word = std::min(result.find_first_not_of('-'), result.size());
  result.erase(std::remove_if(result.begin() + static_cast<std::ptrdiff_t>(word), result.end(),
                              [](char c) { return c == '-' || c == '_'; }),
               result.end());
  return result;
}

}  // namespace

int edit_distance(std::string_view a_text, std::string_view b_text) {
  const std::string a = folded(a_text);
  const std::string b = folded(b_text);
  // Three rows of the usual table: a swap looks two rows back.
  std::vector<int> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({replaced, previous[j] + 1, current[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], before[j - 2] + 1);
      }
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& known,
                                 int limit) {
  // A word from a file may be of any length; a text longer than a name is not a misspelt one.
  constexpr std::size_t kLongest = 200;
  if (word.empty() || word.size() > kLongest) return {};
  std::vector<std::pair<int, std::string>> near;
  const std::string wanted = folded(word);
  for (const std::string& name : known) {
    const std::string candidate = folded(name);
    const int distance = edit_distance(wanted, candidate);
    const int allowed =
        std::max(1, static_cast<int>(std::max(wanted.size(), candidate.size()) / 3));
    const bool prefix = std::min(wanted.size(), candidate.size()) >= 2 &&
                        (candidate.starts_with(wanted) || wanted.starts_with(candidate));
    if (distance <= allowed || prefix) near.emplace_back(prefix ? 0 : distance, name);
  }
  std::stable_sort(near.begin(), near.end(),
                   [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<std::string> result;
  for (auto& [distance, name] : near) {
    if (static_cast<int>(result.size()) == limit) break;
    result.push_back(std::move(name));
  }
  return result;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  const std::vector<std::string> near = nearest(word, known);
  if (near.empty()) return fmt::format("known: {}", fmt::join(known, ", "));
  return fmt::format("did you mean {}?", fmt::join(near, " or "));
}

void require_known(std::string_view owner, fmt::format_string<std::string_view&> refusal,
                   std::string_view key, const std::vector<std::string>& known) {
  if (std::ranges::count(known, key) > 0) return;
  fail<UsageError>("{}: {}; {}", owner, fmt::format(refusal, key),
                   known.empty() ? "it has none" : suggestion(key, known));
}

}  // namespace rk
