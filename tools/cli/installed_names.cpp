#include "tools/cli/installed_names.h"

#include <filesystem>
#include <regex>

namespace rk {
namespace {

constexpr const char* kLonger = "$1rankine-$2";

}  // namespace

InstalledNames::InstalledNames(const std::string& program)
    : installed_(std::filesystem::path(program).filename().string().starts_with("rankine-")) {}

std::string InstalledNames::in_advice(const std::string& text) const {
  if (!installed_) return text;
  static const std::regex quoted("(`)(train|eval|probe|bench|convert)(?=[ `])");
  return std::regex_replace(text, quoted, kLonger);
}

std::string InstalledNames::in_help(const std::string& text) const {
  if (!installed_) return text;
  static const std::regex example("(\\n  )(train|eval|probe|bench|convert)(?= [^ ])");
  static const std::regex before_flag("(^|[ (:])(train|eval|probe|bench|convert)(?= --)");
  return std::regex_replace(std::regex_replace(in_advice(text), example, kLonger), before_flag,
                            kLonger);
}

}  // namespace rk
