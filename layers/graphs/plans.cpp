#include "layers/graphs/plans.h"

#include "engine/base/error.h"
#include "engine/base/text_of.h"
#include "engine/system/read_file.h"

#include <map>
#include <sstream>

namespace rk {
namespace {

constexpr std::size_t kLargestFile = std::size_t{16} << 20;

}  // namespace

double agreement(Precision precision) {
  switch (precision) {
    case Precision::kFp32: return 1e-5;
    case Precision::kTf32:
    case Precision::kFp16: return 2e-3;
    case Precision::kBf16: return 1.6e-2;
  }
  return 0;
}

std::vector<std::size_t> engines_to_time(const std::vector<std::string>& names) {
  constexpr std::size_t kFirst = 5;
  constexpr int kEach = 2;
  std::vector<std::size_t> order, more;
  std::map<std::string, int> counts;
  for (std::size_t i = 0; i < names.size(); ++i) {
    int& count = counts[names[i].substr(0, names[i].find('_'))];
    if (i >= kFirst && count >= kEach) {
      more.push_back(i);
      continue;
    }
    ++count;
    order.push_back(i);
  }
  order.insert(order.end(), more.begin(), more.end());
  return order;
}

GpuPlans GpuPlans::read(const std::string& path) {
  const auto bytes = read_file(path, kLargestFile);
  std::istringstream text(std::string(text_of(bytes)));
  GpuPlans plans;
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    if (number == 1) {
      if (!line.starts_with("# ")) {
        fail<InputError>("{}: line 1: expected '# <GPU>, cuDNN <version>', got '{}'", path,
                         line.substr(0, 40));
      }
      plans.environment_ = line.substr(2);
      continue;
    }
    const std::size_t first = line.find('\t');
    const std::size_t second = line.find('\t', first == std::string::npos ? first : first + 1);
    if (first == std::string::npos || second == std::string::npos) {
      fail<InputError>("{}: line {}: expected a graph, its engine and a time between tabs", path,
                       number);
    }
    plans.entries_[line.substr(0, first)] = {line.substr(first + 1, second - first - 1),
                                             line.substr(second + 1)};
  }
  if (number == 0) fail<InputError>("{}: the file is empty", path);
  return plans;
}

std::string GpuPlans::text() const {
  std::string text = fmt::format("# {}\n", environment_);
  for (const auto& [graph, entry] : entries_) {
    text += fmt::format("{}\t{}\t{}\n", graph, entry.engine, entry.comment);
  }
  return text;
}

void GpuPlans::add(const Timing& timing) {
  const Timing::Engine& taken = timing.engines[timing.taken];
  add(timing.graph, taken.name, fmt::format("{:.4f} ms of {:.4f}", taken.ms, timing.engines[0].ms));
}

void GpuPlans::add(const std::string& graph, const std::string& engine,
                   const std::string& comment) {
  entries_[graph] = {engine, comment};
}

std::string GpuPlans::engine(const std::string& graph) const {
  const auto found = entries_.find(graph);
  return found == entries_.end() ? std::string() : found->second.engine;
}

bool GpuPlans::names_engine(const std::string& graph) const {
  const std::string named = engine(graph);
  return !named.empty() && named != kOwnKernels;
}

}  // namespace rk
