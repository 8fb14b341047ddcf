// Part of Program (engine/tape/program.h): chooses the layout of every image, the one its producer
// wants, with an additional reorder node for readers that want another one.
#include "engine/base/error.h"
#include "engine/tape/program.h"
#include "engine/tape/reorder.h"

#include <map>
#include <utility>

namespace rk {

void Program::choose_layouts() {
  std::vector<std::unique_ptr<Node>> nodes = std::exchange(nodes_, {});
  std::vector<std::vector<Edge>> edges = std::exchange(edges_, {});
  const std::vector<TensorId> outputs = std::exchange(outputs_, {});
  const std::vector<std::int64_t> begins = std::exchange(parameters_begin_, {});
  std::map<std::pair<TensorId, std::int64_t>, TensorId> reordered;  // by tensor and channels per
                                                                    // block
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const ChannelBlocks given = usual_blocks(edges[n], state(outputs[n]));
    ChannelBlocks blocks = given;
    nodes[n]->choose_layouts(blocks);
    for (std::size_t i = 0; i < edges[n].size(); ++i) {
      if (blocks.inputs[i] == given.inputs[i]) continue;
      TensorId& tensor = edges[n][i].input.tensor;
      const auto [place, first] = reordered.try_emplace({tensor, blocks.inputs[i]}, -1);
      if (first) {
        parameters_begin_.push_back(begins[n]);
        place->second = append_reordered(tensor, blocks.inputs[i]);
      }
      tensor = place->second;
    }
    TensorState& out = state(outputs[n]);
    out.block = blocks.output;
    expect(out.block == 0 || out.shape[3] % out.block == 0,
           "[{}] expected blocks of channels that divide {}, got {}", out.name, out.shape[3],
           out.block);
    out.producer = static_cast<int>(nodes_.size());
    nodes_.push_back(std::move(nodes[n]));
    edges_.push_back(std::move(edges[n]));
    outputs_.push_back(outputs[n]);
    parameters_begin_.push_back(begins[n]);
  }
}

// The default layouts of a node. Inputs: as they are. Output: NHWC, or the first input's channel
// blocks if that is an image in blocks.
ChannelBlocks Program::usual_blocks(const std::vector<Edge>& edges,
                                    const TensorState& output) const {
  ChannelBlocks blocks;
  for (const Edge& e : edges) blocks.inputs.push_back(state(e.input.tensor).block);
  if (output.shape.rank() != 4) return blocks;
  blocks.output = output.shape[3];
  if (edges.empty()) return blocks;
  const TensorState& first = state(edges[0].input.tensor);
  if (first.block > 0 && first.block < first.shape[3]) blocks.output = first.block;
  return blocks;
}

TensorId Program::append_reordered(TensorId id, std::int64_t block) {
  const TensorState& from = state(id);
  expect(!on_gpu(), "[{}] expected NHWC on a GPU, which reorders nothing", from.name);
  TensorState t;
  t.name = fmt::format("{} in {} channels", from.name, block);
  t.shape = from.shape;
  t.block = block;
  t.dtype = from.dtype;
  t.producer = static_cast<int>(nodes_.size());
  t.wants_gradient = from.wants_gradient;
  nodes_.push_back(reorder_node(t.name, context_.threads(), image_layout(t.shape, from.block),
                                image_layout(t.shape, block)));
  edges_.push_back({{.input = {.tensor = id}}});
  tensors_.push_back(std::move(t));
  outputs_.push_back(static_cast<TensorId>(tensors_.size()) - 1);
  return outputs_.back();
}

}  // namespace rk
