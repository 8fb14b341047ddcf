// A network's parameter by its name.
#pragma once

#include "engine/tape/parameters.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace rk {

inline ParameterId id_of(const Parameters& parameters, const std::string& name) {
  const auto& entries = parameters.entries();
  const auto found = std::ranges::find(entries, name, &Parameters::Entry::name);
  if (found == entries.end()) throw std::invalid_argument("no parameter " + name);
  return static_cast<ParameterId>(found - entries.begin());
}

}  // namespace rk
