// What a page says of where its numbers come from: names and their values.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rk {

using ReportFacts = std::vector<std::pair<std::string, std::string>>;  // name, value

struct DifferingFact {
  std::string name;
  std::string first, second;  // empty: it is not among those facts
};

// The value as people read it: "not given" if it is empty. ("none" is a word of some settings.)
std::string shown_value(const std::string& value);

// Facts of which the values differ, in the order of `first`, then those that only `second` has;
// none if one side has no facts at all, of which nothing is known then.
std::vector<DifferingFact> differing_facts(const ReportFacts& first, const ReportFacts& second);

// As HTML.
std::string facts_list(const ReportFacts& facts);

}  // namespace rk
