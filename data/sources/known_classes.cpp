#include "data/sources/known_classes.h"

#include "data/sources/folder_splits.h"

#include <algorithm>

namespace rk {
namespace {

std::string without_split(const std::string& name) {
  const std::size_t slash = name.find('/');
  const bool split = slash != std::string::npos && split_of_folder(name.substr(0, slash));
  return split ? name.substr(slash + 1) : name;
}

}  // namespace

KnownClasses::KnownClasses(const std::vector<std::string>& names) {
  for (const std::string& name : names) names_.insert(without_split(name));
}

bool KnownClasses::hold(const DataClass& of) const {
  const auto known = [&](const std::string& name) { return names_.contains(without_split(name)); };
  return known(of.name) || std::any_of(of.merged.begin(), of.merged.end(), known);
}

std::int64_t KnownClasses::count(const Dataset& data) const {
  return std::count_if(data.classes().begin(), data.classes().end(),
                       [this](const DataClass& of) { return hold(of); });
}

}  // namespace rk
