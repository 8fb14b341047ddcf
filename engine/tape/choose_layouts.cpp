// Part of Tape (engine/tape/tape.h): chooses the layout of every image, the one its producer wants,
// with an additional reorder node for readers that want another one.
#include "engine/base/error.h"
#include "engine/tape/reorder.h"
#include "engine/tape/tape.h"

#include <map>
#include <utility>

namespace rk {
namespace {

// The default layouts of a node. Inputs: as they are. Output: NHWC, or the first input's channel
// blocks if that is an image in blocks.
ChannelBlocks usual_blocks(const Tape& tape, const Tape::Links& links) {
  ChannelBlocks blocks;
  for (const NodeInput& i : links.inputs) blocks.inputs.push_back(tape.tensor(i.tensor).block);
  const Shape& shape = tape.tensor(links.output).shape;
  if (shape.rank() != 4) return blocks;
  blocks.output = shape[3];
  if (links.inputs.empty()) return blocks;
  const RecordedTensor& first = tape.tensor(links.inputs[0].tensor);
  if (first.block > 0 && first.block < first.shape[3]) blocks.output = first.block;
  return blocks;
}

}  // namespace

void Tape::choose_layouts(int threads, bool on_gpu) {
  std::vector<std::unique_ptr<Node>> recorded = std::exchange(nodes, {});
  std::vector<Links> recorded_links = std::exchange(links, {});
  std::map<std::pair<TensorId, std::int64_t>, TensorId> reordered;  // by tensor and channels per
                                                                    // block
  for (std::size_t n = 0; n < recorded.size(); ++n) {
    Links& own = recorded_links[n];
    const ChannelBlocks given = usual_blocks(*this, own);
    ChannelBlocks blocks = given;
    recorded[n]->choose_layouts(blocks);
    for (std::size_t i = 0; i < own.inputs.size(); ++i) {
      if (blocks.inputs[i] == given.inputs[i]) continue;
      TensorId& input = own.inputs[i].tensor;
      expect(!on_gpu, "[{}] expected NHWC on a GPU, which reorders nothing", tensor(input).name);
      const auto [place, first] = reordered.try_emplace({input, blocks.inputs[i]}, -1);
      if (first) {
        place->second = append_reordered(input, blocks.inputs[i], own.parameters_begin, threads);
      }
      input = place->second;
    }
    RecordedTensor& out = tensor(own.output);
    out.block = blocks.output;
    const bool is_image = out.shape.rank() == 4;
    expect(is_image ? out.block > 0 && out.shape[3] % out.block == 0 : out.block == 0,
           "[{}] expected blocks of channels that divide {} of shape {}, got {}", out.name,
           is_image ? out.shape[3] : 0, out.shape.text(), out.block);
    out.producer = count();
    nodes.push_back(std::move(recorded[n]));
    links.push_back(std::move(own));
  }
}

TensorId Tape::append_reordered(TensorId id, std::int64_t block, std::int64_t parameters_begin,
                                int threads) {
  const RecordedTensor& from = tensor(id);
  RecordedTensor result{.name = fmt::format("{} in {} channels", from.name, block),
                        .shape = from.shape,
                        .block = block,
                        .dtype = from.dtype,
                        .wants_gradient = from.wants_gradient};
  auto node = reorder_node(result.name, threads, image_layout(from.shape, from.block),
                           image_layout(from.shape, block));
  return append(std::move(node), {{.tensor = id}}, parameters_begin, std::move(result));
}

}  // namespace rk
