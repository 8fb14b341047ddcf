// Whether a class was seen before, by its name: what a network was trained on against what it is
// measured on, which may have been read in other ways.
#pragma once

#include "data/sources/dataset.h"

#include <set>
#include <string>
#include <vector>

namespace rk {

class KnownClasses {
 public:
  explicit KnownClasses(const std::vector<std::string>& names);  // Dataset::class_names()

  // Whether it is one of them, or one that it was merged of is. The split that names carry in front
  // with splits=none ("train/c0") counts on neither side.
  bool hold(const DataClass& of) const;
  std::int64_t count(const Dataset& data) const;  // of its classes, those that they hold

 private:
  std::set<std::string> names_;
};

}  // namespace rk
