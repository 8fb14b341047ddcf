// The losses by name, of registry.cpp's list; `train --loss`, `probe`, `bench loss` and the tests
// find them here. docs/extending.md says what one more takes.
//
// A loss is written NAME or NAME:key=value,key=value. For an unknown loss, parameter or value,
// parse_loss throws a UsageError that suggests the nearest name.
#pragma once

#include "losses/frame/entry.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rk {

const std::vector<LossEntry>& loss_registry();

struct LossSpec {
  const LossEntry* entry = nullptr;
  LossValues values;
  // Of the parameters that are not as they would be anyway, those without effect beside the others:
  // "margin: has no effect with soft=1".
  std::vector<std::string> without_effect{};
  std::string text() const;  // with every parameter spelled out
};
LossSpec parse_loss(std::string_view spec);

template <class S> std::unique_ptr<Loss<S>> make_loss(const LossSpec& spec);
template <class S> std::unique_ptr<Loss<S>> make_loss(std::string_view spec) {
  return make_loss<S>(parse_loss(spec));
}

// What `probe --loss NAME --help` prints: summary, paper, parameters with default, range and
// meaning.
std::string describe_loss(const LossEntry& entry);

}  // namespace rk
