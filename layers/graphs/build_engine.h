// Which of a graph's engines is built: a template, since a test builds those of GPUs that are only
// described (tests/cudnn/described_graph.cpp).
#pragma once

#include "engine/base/error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace rk::cudnn {

// Builds and returns the first engine, in the heuristics' order, for which wanted(engine) holds; -1
// if there is none. Those that would have to be compiled are not built but added to `left`.
template <class Engines, class Wanted>
std::int64_t build_first(Engines& engines, Wanted&& wanted, std::vector<std::int64_t>* left) {
  for (std::int64_t i = 0; i < engines.count(); ++i) {
    if (!wanted(i)) continue;
    if (engines.compiles(i)) {
      left->push_back(i);
    } else if (engines.build(i).empty()) {
      return i;
    }
  }
  return -1;
}

// Builds the first engine that need not be compiled, else the first that must be. `wanted` names an
// engine to use instead, if it is available. Throws DeviceError if none can be built.
template <class Engines> std::int64_t build_engine(Engines& engines, const std::string& wanted) {
  if (!wanted.empty()) {
    const auto named = [&](std::int64_t i) { return engines.name(i) == wanted; };
    std::vector<std::int64_t> left;
    const std::int64_t ready = build_first(engines, named, &left);
    if (ready >= 0) return ready;
    for (const std::int64_t i : left) {
      if (engines.build(i).empty()) return i;
    }
  }
  std::vector<std::int64_t> left;
  const std::int64_t ready = build_first(
      engines, [](std::int64_t) { return true; }, &left);
  if (ready >= 0) return ready;
  // Report the first refusal that gives a reason: deselected engines report only that they are.
  std::string refusal;
  for (const std::int64_t i : left) {
    const std::string problem = engines.build(i);
    if (problem.empty()) return i;
    if (refusal.empty() || refusal.find("Deselect") != std::string::npos) refusal = problem;
  }
  fail<DeviceError>("cuDNN: {}: plan: {}", engines.graph().text(), refusal);
}

}  // namespace rk::cudnn
