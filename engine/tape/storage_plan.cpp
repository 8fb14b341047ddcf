#include "engine/tape/storage_plan.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"

#include <algorithm>
#include <utility>

namespace rk {

StoragePlan::StoragePlan(const Tape& tape, bool gradients, bool keep_all)
    : keep_all_(keep_all), tensors_(tape.tensors.size()) {
  for (const Tape::Links& node : tape.links) edges_.emplace_back(node.inputs.size());
  plan_values(tape);
  if (gradients) {
    plan_gradients(tape);
    plan_masks(tape);
  }
}

// A value lives from its producer to its last reader, in backward too if a node reads it there.
void StoragePlan::plan_values(const Tape& tape) {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const RecordedTensor& t = tape.tensors[i];
    if (t.within.whole < 0) tensors_[i].value = add({t.bytes(), end(), 0});
  }
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const RecordedTensor& t = tape.tensors[i];
    if (t.within.whole >= 0) tensors_[i].value = of(t.within.whole).value;
    // The caller fills the inputs before the step.
    extend(tensors_[i].value, std::max(t.producer, 0));
    if (t.wants_gradient && t.read_in_backward) {
      extend(tensors_[i].value, backward_time(t.producer));
    }
  }
  for (int n = 0; n < tape.count(); ++n) {
    for (const NodeInput& input : tape.at(n).inputs) {
      extend(of(input.tensor).value, n);
      if (tape.goes_backward(n) && input.read_in_backward) {
        extend(of(input.tensor).value, backward_time(n));
      }
    }
  }
  // The caller reads the output after forward().
  extend(of(tape.output).value, tape.count());
}

// Visits nodes in backward order, in which the first writer of a gradient overwrites.
void StoragePlan::plan_gradients(const Tape& tape) {
  const int count = tape.count();
  planned(tape.output).gradient = add({tape.tensor(tape.output).bytes(), count, count});
  for (int n = count - 1; n >= 0; --n) {
    const Tape::Links& node = tape.at(n);
    const RecordedTensor& out = tape.tensor(node.output);
    if (!out.wants_gradient) continue;
    const StorageId of_output = of(node.output).gradient;
    expect(of_output >= 0, "[program] {} has no reader that gives it a gradient", out.name);
    const int now = backward_time(n);
    extend(of_output, now);
    bool place_taken = keep_all_ || out.within.whole >= 0;
    // If a node reads a tensor twice, its second edge adds to that tensor's gradient; so that
    // gradient must not take the place of out's gradient, which both edges read.
    const auto read_once = [&](TensorId id) {
      return std::ranges::count(node.inputs, id, &NodeInput::tensor) == 1;
    };
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const NodeInput& input = node.inputs[i];
      const RecordedTensor& in = tape.tensor(input.tensor);
      if (!in.wants_gradient) continue;
      StorageId& gradient = planned(input.tensor).gradient;
      EdgeStorage& edge = edges_[at(n)][i];
      if (gradient >= 0) {
        edge.accumulate = true;
        edge.others = gradient;
        extend(gradient, now);
        if (input.adds_elsewhere) gradient = add({in.bytes(), now, now});
      } else if (in.within.whole >= 0) {
        gradient = of_output;  // out is the join
      } else if (input.gradient_in_place && !place_taken && in.bytes() == out.bytes() &&
                 read_once(input.tensor)) {
        gradient = of_output;
        place_taken = true;
      } else {
        gradient = add({in.bytes(), now, now});
      }
      edge.gradient = gradient;
    }
  }
  // The caller reads the inputs' gradients after the step.
  for (std::size_t id = 0; id < tensors_.size(); ++id) {
    if (tape.tensors[id].producer < 0 && tensors_[id].gradient >= 0) {
      extend(tensors_[id].gradient, end());
    }
  }
}

// In backward, the last writer of a ReLU output's gradient is the first node that reads the output,
// so that node applies the mask. The program's output is skipped: the loss alone writes its
// gradient, unmasked.
void StoragePlan::plan_masks(const Tape& tape) {
  for (std::size_t id = 0; id < tensors_.size(); ++id) {
    const RecordedTensor& t = tape.tensors[id];
    const auto tensor = static_cast<TensorId>(id);
    if (!t.takes_masked_gradient || tensor == tape.output) continue;
    for (int n = 0; n < tape.count(); ++n) {
      const std::vector<NodeInput>& inputs = tape.at(n).inputs;
      std::vector<EdgeStorage>& edges = edges_[at(n)];
      std::size_t i = 0;
      while (i < inputs.size() && !(inputs[i].tensor == tensor && edges[i].gradient >= 0)) ++i;
      if (i == inputs.size()) continue;
      const NodeInput& reader = inputs[i];
      EdgeStorage& edge = edges[i];
      edge.mask = tensors_[id].gradient_masked =
          reader.masks_gradient && (!edge.accumulate || reader.adds_elsewhere);
      const Node& node = *tape.nodes[at(n)];
      if (edge.mask && node.sums_gradient(i, edge.use())) {
        const auto bytes = static_cast<std::size_t>(t.shape[3]) * sizeof(float);
        tensors_[id].gradient_sums = edge.sums = add({bytes, backward_time(n), end()});
      }
      break;
    }
  }
}

void StoragePlan::extend(StorageId storage, int time) {
  Lifetime& life = lifetimes_[at(storage)];
  life.first = std::min(life.first, time);
  life.last = std::max(life.last, time);
}

StorageId StoragePlan::add(const Lifetime& life) {
  lifetimes_.push_back(life);
  return static_cast<StorageId>(lifetimes_.size()) - 1;
}

void StoragePlan::place() {
  if (keep_all_) {
    for (Lifetime& life : lifetimes_) {
      life.first = 0;
      life.last = end();
    }
  }
  ArenaPlan arena = plan_arena(lifetimes_);
  offsets_ = std::move(arena.offsets);
  bytes_ = arena.bytes;
}

}  // namespace rk
