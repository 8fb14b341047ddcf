#include "retrieval/report/facts.h"

#include "retrieval/report/html.h"

#include <fmt/format.h>

#include <algorithm>

namespace rk {
namespace {

// Empty if there is none of that name.
std::string value_of(const ReportFacts& facts, const std::string& name) {
  const auto found = std::ranges::find(facts, name, &ReportFacts::value_type::first);
  return found == facts.end() ? std::string() : found->second;
}

}  // namespace

std::string shown_value(const std::string& value) { return value.empty() ? "not given" : value; }

std::vector<DifferingFact> differing_facts(const ReportFacts& first, const ReportFacts& second) {
  if (first.empty() || second.empty()) return {};
  std::vector<DifferingFact> out;
  for (const auto& [name, value] : first) {
    const std::string other = value_of(second, name);
    if (other != value) out.push_back({name, value, other});
  }
  for (const auto& [name, value] : second) {
    const bool known = std::ranges::count(first, name, &ReportFacts::value_type::first) > 0;
    if (!known && !value.empty()) out.push_back({name, "", value});
  }
  return out;
}

std::string facts_list(const ReportFacts& facts) {
  std::string out = "<dl>\n";
  for (const auto& [name, value] : facts) {
    out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped(name), escaped(shown_value(value)));
  }
  return out + "</dl>\n";
}

}  // namespace rk
