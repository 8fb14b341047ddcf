#include "training/chunked_network.h"

#include "kernels/blocks/elementwise_block.h"
#include "kernels/launch.h"

#include <array>

namespace rk {
namespace {

// Gradients are summed over the processes in pieces of about this size, while backward continues.
constexpr std::int64_t kBucket = (std::int64_t{25} << 20) / sizeof(float);

std::size_t bytes_of(std::int64_t floats) {
  return static_cast<std::size_t>(floats) * sizeof(float);
}

// y += x
void add(const Context& context, std::int64_t count, const float* x, float* y) {
  launch(context, CopyOrAdd<float>{.count = count, .x = x, .y = y, .accumulate = true});
}

}  // namespace

ChunkedNetwork::ChunkedNetwork(Program& program, TensorId embeddings, const BatchParts& parts,
                               ProcessGroup& processes, std::int64_t network_elements,
                               NetworkInput& input, bool shares_statistics)
    : program_(program),
      tensor_(embeddings),
      parts_(parts),
      dim_(program.shape(embeddings)[1]),
      network_elements_(network_elements),
      input_(input),
      shares_statistics_(shares_statistics),
      group_(make_device_group(program.context(), processes)),
      embeddings_(program.value(embeddings)),
      gradients_(program.gradient(embeddings)) {
  const Context& context = program.context();
  if (!parts.in_one_piece()) {
    rows_ = context.allocate<float>(parts.batch * dim_);
    row_gradients_ = context.allocate<float>(parts.batch * dim_);
    embeddings_ = rows_.as<float>();
    gradients_ = row_gradients_.as<float>();
  }
  if (parts.chunks() > 1) {
    Parameters& parameters = program.parameters();
    sums_ = context.allocate<float>(network_elements);
    statistics_ = context.allocate(parameters.statistics().size_bytes());
  }
  if (group_->size() > 1) {
    per_process_ = context.copy_of(std::array{1.0F / static_cast<float>(group_->size())});
  }
}

void ChunkedNetwork::embed() {
  const std::int64_t elements = parts_.chunk * dim_;
  for (std::int64_t c = 0; c < parts_.chunks(); ++c) {
    input_.fill(c * parts_.chunk);
    program_.forward();
    if (parts_.in_one_piece()) continue;
    program_.context().copy(share().data() + c * elements, program_.value(tensor_),
                            bytes_of(elements));
  }
  if (group_->size() > 1) gather();
}

void ChunkedNetwork::gather() {
  const std::span<float> own = share();
  group_->all_gather(own.data(), embeddings_, std::ssize(own));
  if (!shares_statistics_) return;
  // Replaces the running statistics by their mean over the processes.
  const Context& context = program_.context();
  float* statistics = program_.parameters().device_statistics();
  const auto count = static_cast<std::int64_t>(program_.parameters().statistics().size());
  group_->begin_all_reduce(statistics, count);
  group_->finish_all_reduces();
  launch(context, Scale{.count = count, .factor = per_process_.as<float>(), .values = statistics});
}

void ChunkedNetwork::backward() {
  if (parts_.chunks() == 1) {
    take_gradients(0);
    return backward_with_all_reduce();
  }
  const Context& context = program_.context();
  Parameters& parameters = program_.parameters();
  context.copy(statistics_.data(), parameters.device_statistics(), statistics_.bytes());
  const std::int64_t last = parts_.chunks() - 1;
  for (std::int64_t c = last; c >= 0; --c) {
    if (c < last) {  // embed() left the last one's values in the network
      input_.fill(c * parts_.chunk);
      program_.forward();
    }
    take_gradients(c);
    program_.backward();
    add_up(c);
  }
  context.copy(parameters.device_statistics(), statistics_.data(), statistics_.bytes());
  group_->begin_all_reduce(parameters.device_gradients(), network_elements_);
  group_->finish_all_reduces();
}

void ChunkedNetwork::take_gradients(std::int64_t chunk) {
  if (parts_.in_one_piece()) return;
  const std::int64_t elements = parts_.chunk * dim_;
  program_.context().copy(program_.gradient(tensor_),
                          gradients_ + parts_.share_begin(dim_) + chunk * elements,
                          bytes_of(elements));
}

// The addition for the first chunk, which comes last, goes into the gradients themselves, where the
// optimizer reads them.
void ChunkedNetwork::add_up(std::int64_t chunk) {
  float* gradients = program_.parameters().device_gradients();
  auto* sums = sums_.as<float>();
  if (chunk + 1 == parts_.chunks()) {
    program_.context().copy(sums, gradients, bytes_of(network_elements_));
  } else if (chunk > 0) {
    add(program_.context(), network_elements_, gradients, sums);
  } else {
    add(program_.context(), network_elements_, sums, gradients);
  }
}

// The gradients of the last layers, which lie at the end, are complete first.
void ChunkedNetwork::backward_with_all_reduce() {
  float* gradients = program_.parameters().device_gradients();
  const bool alone = group_->size() == 1;
  std::int64_t end = network_elements_;
  int complete = static_cast<int>(program_.nodes().size());
  for (int node = complete - 1; node >= 0; --node) {
    program_.backward(node);
    const std::int64_t begin = program_.parameters_begin(node);
    if (node > 0 && (alone || end - begin < kBucket)) continue;
    program_.complete_gradients(node, complete);
    complete = node;
    if (end > begin) group_->begin_all_reduce(gradients + begin, end - begin);
    end = begin;
  }
  group_->finish_all_reduces();
}

std::size_t ChunkedNetwork::bytes() const {
  return rows_.bytes() + row_gradients_.bytes() + sums_.bytes() + statistics_.bytes();
}

}  // namespace rk
