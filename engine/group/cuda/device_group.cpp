#include "engine/group/device_group.h"
#include "engine/group/nccl/device_group.h"

namespace rk {
namespace {

class DeviceGroupOfOne final : public DeviceGroup {
 public:
  explicit DeviceGroupOfOne(const CudaContext& cuda) : cuda_(cuda) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void gather(const float* own, float* all, std::int64_t count) override {
    if (own != all) cuda_.copy(all, own, static_cast<std::size_t>(count) * sizeof(float));
  }
  void begin_sum(float*, std::int64_t) override {}
  void finish_sums() override {}

 private:
  const CudaContext& cuda_;
};

}  // namespace

std::unique_ptr<DeviceGroup> make_device_group(const CudaContext& cuda, ProcessGroup& processes) {
  if (processes.alone()) return std::make_unique<DeviceGroupOfOne>(cuda);
  return join_nccl(cuda, processes);
}

}  // namespace rk
