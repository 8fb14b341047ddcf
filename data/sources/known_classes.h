// Tells by name whether a class was seen before: compares the classes that a network was trained on
// with the classes it is evaluated on, which may have been read with other options.
#pragma once

#include "data/sources/dataset.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace rk {

class KnownClasses {
 public:
  explicit KnownClasses(const std::vector<std::string>& names);  // Dataset::class_names()

  // Whether the class, or one of the classes merged into it, is known. A leading split name, which
  // class names have with splits=none ("train/c0"), is ignored on both sides.
  bool hold(const DataClass& of) const;
  std::int64_t count(const Dataset& data) const;  // the number of classes of `data` that are known

 private:
  std::set<std::string> names_;
};

}  // namespace rk
