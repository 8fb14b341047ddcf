#include "tools/bench/step/step_floor.h"

#include "engine/tape/program.h"
#include "tools/bench/timing.h"
#include "tools/cli/messages.h"

#include <array>
#include <cstddef>
#include <map>
#include <string_view>

namespace rk {

StepFloor::StepFloor(Trainer& trainer)
    : step_(trainer.train_step()),
      program_(trainer.program()),
      nodes_(trainer.program().nodes().size()) {}

double StepFloor::pass() {
  const auto& nodes = program_.nodes();
  double total = 0;
  step_.fill(0);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes_[i].forward.push_back(milliseconds([&] { nodes[i]->forward(); }));
    nodes_[i].forward_floor.push_back(milliseconds([&] { nodes[i]->forward_floor(); }));
    total += nodes_[i].forward_floor.back();
  }
  losses_.push_back(milliseconds([&] { step_.value_and_gradient(); }));
  for (std::size_t i = nodes.size(); i-- > 0;) {
    nodes_[i].backward.push_back(milliseconds([&] { nodes[i]->backward(); }));
    nodes_[i].backward_floor.push_back(milliseconds([&] { nodes[i]->backward_floor(); }));
    total += nodes_[i].backward_floor.back();
  }
  updates_.push_back(milliseconds([&] { step_.update(); }));
  return total;
}

void StepFloor::print_table(bool nodes) const {
  using Row = std::array<double, 4>;
  const auto print_row = [](std::string_view name, const Row& row) {
    print("{:40}{:12.1f}{:12.1f}{:12.1f}{:12.1f}\n", name, row[0], row[1], row[2], row[3]);
  };
  print("{:40}{:>12}{:>12}{:>12}{:>12}\n", "ms", "forward", "alone", "backward", "alone");
  std::map<std::string_view, Row> kinds;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const NodeTimes& times = nodes_[i];
    const Row row = {summarize(times.forward).median, summarize(times.forward_floor).median,
                     summarize(times.backward).median, summarize(times.backward_floor).median};
    const Node& node = *program_.nodes()[i];
    Row& kind = kinds[node.kind()];
    for (std::size_t k = 0; k < row.size(); ++k) kind[k] += row[k];
    if (nodes) print_row(node.name(), row);
  }
  for (const auto& [name, row] : kinds) print_row(name, row);
  print("{:40}{:12.1f}\n{:40}{:36.1f}\n", "loss", summarize(losses_).median,
        "gradient norm, optimizer", summarize(updates_).median);
}

}  // namespace rk
