#include "engine/group/device_group.h"

#include "engine/group/nccl/device_group.h"

#include <algorithm>

namespace rk {
namespace {

class DeviceGroupOfOne final : public DeviceGroup {
 public:
  explicit DeviceGroupOfOne(const Context& context) : context_(context) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_gather(const float* own, float* all, std::int64_t count) override {
    if (own != all) context_.copy(all, own, static_cast<std::size_t>(count) * sizeof(float));
  }
  void begin_all_reduce(float*, std::int64_t) override {}
  void finish_all_reduces() override {}

 private:
  const Context& context_;
};

// Without GPUs: the processes' own sums. The order of MPI's additions may depend on how a sum is
// divided, so everything begun is summed in one call; the pieces must lie side by side.
class HostGroup final : public DeviceGroup {
 public:
  explicit HostGroup(ProcessGroup& processes) : processes_(processes) {}
  int rank() const override { return processes_.rank(); }
  int size() const override { return processes_.size(); }
  void all_gather(const float* own, float* all, std::int64_t count) override {
    processes_.all_gather<float>({own, static_cast<std::size_t>(count)},
                                 {all, static_cast<std::size_t>(size() * count)});
  }
  void begin_all_reduce(float* values, std::int64_t count) override {
    begin_ = begin_ == nullptr ? values : std::min(begin_, values);
    end_ = end_ == nullptr ? values + count : std::max(end_, values + count);
  }
  void finish_all_reduces() override {
    processes_.all_reduce_sum({begin_, end_});
    begin_ = end_ = nullptr;
  }

 private:
  ProcessGroup& processes_;
  float *begin_ = nullptr, *end_ = nullptr;
};

}  // namespace

std::unique_ptr<DeviceGroup> make_device_group(const Context& context, ProcessGroup& processes) {
  if (processes.alone()) return std::make_unique<DeviceGroupOfOne>(context);
  if (context.on_gpu()) return join_nccl(context.cuda(), processes);
  return std::make_unique<HostGroup>(processes);
}

}  // namespace rk
