// Which of the known names somebody meant: for flags, losses and their parameters, data kinds,
// settings.
//
// Distance counts inserted, deleted, replaced and swapped characters, upper and lower case alike,
// '-' and '_' alike. A name is near when at most a third of the characters differ (at least one
// may), or when one of the two begins with the other. Ties keep the order of `known`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rk {

int edit_distance(std::string_view a, std::string_view b);

// The near ones, nearest first, at most `limit`; empty where none is near.
std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& known,
                                 int limit = 3);

// The "what to do" half of a message: "did you mean smooth_ap?", "did you mean fastap or
// smooth_ap?", or, where nothing is near, "known: fastap, smooth_ap".
std::string suggestion(std::string_view word, const std::vector<std::string>& known);

}  // namespace rk
