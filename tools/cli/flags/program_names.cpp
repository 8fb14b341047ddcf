#include "tools/cli/flags/program_names.h"

#include <filesystem>
#include <regex>

namespace rk {
namespace {

// `text` with `before` in front of the second group of each match.
std::string put_before(const std::string& before, const std::string& text,
                       const std::regex& pattern) {
  std::string out;
  auto from = text.begin();
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) {
    const auto name = (*at)[2].first;
    out.append(from, name);
    out += before;
    from = name;
  }
  return out.append(from, text.end());
}

}  // namespace

ProgramNames::ProgramNames(const std::string& program) {
  const std::filesystem::path typed(program);
  own_ = typed.filename().string();
  if (own_.starts_with("rankine-")) {
    before_ = "rankine-";
  } else if (typed.has_parent_path() && typed.is_relative()) {
    own_ = program;
    before_ = typed.parent_path().string() + "/";
  }
}

std::string ProgramNames::in_advice(const std::string& text) const {
  static const std::regex quoted("(`)(train|eval|probe|bench|convert)(?=[ `])");
  return before_.empty() ? text : put_before(before_, text, quoted);
}

std::string ProgramNames::in_help(const std::string& text) const {
  if (before_.empty()) return text;
  static const std::regex example("(\\n  )(train|eval|probe|bench|convert)(?= [^ ])");
  static const std::regex before_flag("(^|[ (:])(train|eval|probe|bench|convert)(?= --)");
  return put_before(before_, put_before(before_, in_advice(text), example), before_flag);
}

}  // namespace rk
