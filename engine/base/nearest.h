// Guesses which of the known names a misspelt word means: for flags, losses and their parameters,
// data kinds, settings.
//
// Distance counts inserted, deleted, replaced and swapped characters, ignoring case and every '-'
// and '_' inside. A name is near when at most a third of the characters differ (one always may), or
// when one of the two, of 2 characters or more, is a prefix of the other. Ties keep the order of
// `known`.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

namespace rk {

int edit_distance(std::string_view a, std::string_view b);

// Returns the near names, nearest first, at most `limit`; empty if there is none.
std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& known,
                                 int limit = 3);

// The "what to do" half of a message: "did you mean smooth_ap?", "did you mean fastap or
// smooth_ap?" or, if no name is near, "known: fastap, smooth_ap".
std::string suggestion(std::string_view word, const std::vector<std::string>& known);

// Throws UsageError if `key` is none of the keys that `owner` has. `refusal` says what the key is
// not, and suggestion() follows: "fastap: no such parameter: bin; did you mean bins?", or, where
// there are no keys, "random_classes: no parameter 'k'; it has none".
void require_known(std::string_view owner, fmt::format_string<std::string_view&> refusal,
                   std::string_view key, const std::vector<std::string>& known);

}  // namespace rk
