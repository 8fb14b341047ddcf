#include "training/chunked_network.h"

#include "engine/device/cuda/context.h"
#include "engine/device/dispatch.h"
#include "kernels/blocks/elementwise_block.h"
#include "kernels/cpu/elementwise_cpu.h"
#include "kernels/launch.h"

#include <algorithm>

namespace rk {
namespace {

std::size_t bytes_of(std::int64_t floats) {
  return static_cast<std::size_t>(floats) * sizeof(float);
}

// y += x, on the device.
void add(const Context& context, std::int64_t count, const float* x, float* y) {
  if constexpr (kHasCuda) {
    if (context.on_gpu()) {
      return launch(CopyOrAdd<float>{.count = count, .x = x, .y = y, .accumulate = true},
                    context.cuda().stream());
    }
  }
  elementwise_cpu::copy(context.threads(), count, x, y, /*accumulate=*/true);
}

}  // namespace

ChunkedNetwork::ChunkedNetwork(Program& program, TensorId embeddings, const BatchParts& parts,
                               std::int64_t network_elements,
                               std::function<void(std::int64_t)> fill)
    : program_(program),
      tensor_(embeddings),
      parts_(parts),
      dim_(program.shape(embeddings)[1]),
      network_elements_(network_elements),
      fill_(std::move(fill)),
      embeddings_(program.value(embeddings)),
      gradients_(program.gradient(embeddings)) {
  const Context& context = program.context();
  if (!parts.in_one_piece()) {
    rows_ = context.allocate(bytes_of(parts.batch * dim_));
    row_gradients_ = context.allocate(bytes_of(parts.batch * dim_));
    embeddings_ = rows_.as<float>();
    gradients_ = row_gradients_.as<float>();
  }
  if (parts.chunks() > 1) {
    Parameters& parameters = program.parameters();
    sums_ = context.allocate(bytes_of(network_elements));
    statistics_ = context.allocate(parameters.statistics().size_bytes());
    counters_.resize(parameters.counters().size());
  }
}

void ChunkedNetwork::embed() {
  const std::int64_t elements = parts_.chunk * dim_;
  for (std::int64_t c = 0; c < parts_.chunks(); ++c) {
    fill_(c);
    program_.forward();
    if (parts_.in_one_piece()) continue;
    program_.context().copy(share().data() + c * elements, program_.value(tensor_),
                            bytes_of(elements));
  }
}

void ChunkedNetwork::backward(const std::function<void()>& back) {
  if (parts_.chunks() == 1) return back_with(0, back);
  const Context& context = program_.context();
  Parameters& parameters = program_.parameters();
  context.copy(statistics_.data(), parameters.device_statistics(), statistics_.bytes());
  std::ranges::copy(parameters.counters(), counters_.begin());
  for (std::int64_t c = 0; c < parts_.chunks(); ++c) {
    fill_(c);
    program_.forward();
    back_with(c, back);
    add_up(c);
  }
  context.copy(parameters.device_statistics(), statistics_.data(), statistics_.bytes());
  std::ranges::copy(counters_, parameters.counters().begin());
}

void ChunkedNetwork::back_with(std::int64_t chunk, const std::function<void()>& back) {
  if (!parts_.in_one_piece()) {
    const std::int64_t elements = parts_.chunk * dim_;
    program_.context().copy(program_.gradient(tensor_),
                            gradients_ + parts_.share_begin(dim_) + chunk * elements,
                            bytes_of(elements));
  }
  back();
}

// The last sum is where the gradients are.
void ChunkedNetwork::add_up(std::int64_t chunk) {
  float* gradients = program_.parameters().device_gradients();
  auto* sums = sums_.as<float>();
  if (chunk == 0) {
    program_.context().copy(sums, gradients, bytes_of(network_elements_));
  } else if (chunk + 1 < parts_.chunks()) {
    add(program_.context(), network_elements_, gradients, sums);
  } else {
    add(program_.context(), network_elements_, sums, gradients);
  }
}

std::size_t ChunkedNetwork::bytes() const {
  return rows_.bytes() + row_gradients_.bytes() + sums_.bytes() + statistics_.bytes();
}

}  // namespace rk
