// In place of NCCL (engine/group/nccl/device_group.cpp): the processes' own exchange, through the
// host. A sum is computed when it is finished and is NaN until then: this finds code that reads it
// earlier or writes to it.
#include "engine/group/nccl/device_group.h"
#include "engine/base/error.h"
#include "tests/host_gpu/cuda/memory.h"
#include "tests/host_gpu/cuda/stream.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace rk {
namespace {

using host_gpu::expect_kind;
using host_gpu::Kind;
using host_gpu::put;
using host_gpu::put_at_once;

std::size_t bytes_of(std::int64_t count) { return static_cast<std::size_t>(count) * sizeof(float); }

class HostGroup final : public DeviceGroup {
 public:
  HostGroup(const CudaContext& cuda, ProcessGroup& processes)
      : stream_(cuda.stream()), processes_(processes) {}
  int rank() const override { return processes_.rank(); }
  int size() const override { return processes_.size(); }

  void all_gather(const float* own, float* all, std::int64_t count) override {
    expect_kind(Kind::kDevice, own, bytes_of(count), "gather, its own part");
    expect_kind(Kind::kDevice, all, bytes_of(size() * count), "gather, all parts");
    put_at_once(stream_, [=, this] {
      processes_.all_gather<float>({own, static_cast<std::size_t>(count)},
                                   {all, static_cast<std::size_t>(size() * count)});
    });
  }

  void begin_all_reduce(float* values, std::int64_t count) override {
    expect_kind(Kind::kDevice, values, bytes_of(count), "sum");
    put(stream_, [=, this] {
      begun_.push_back({values, {values, values + count}});
      host_gpu::fill_with_nan(values, bytes_of(count));
    });
  }

  void finish_all_reduces() override {
    put_at_once(stream_, [this] { finish(); });
  }

 private:
  struct Sum {
    float* values;
    std::vector<float> parts;
  };

  void finish() {
    for (Sum& sum : begun_) {
      const std::span now(sum.values, sum.parts.size());
      if (!std::ranges::all_of(now, [](float value) { return std::isnan(value); })) {
        fail<DeviceError>(
            "[sum] somebody wrote to it between begin_all_reduce() and finish_all_reduces()");
      }
      processes_.all_reduce_sum(sum.parts);
      std::ranges::copy(sum.parts, now.begin());
    }
    begun_.clear();
  }

  CudaStream stream_;
  ProcessGroup& processes_;
  std::vector<Sum> begun_;
};

}  // namespace

std::unique_ptr<DeviceGroup> join_nccl(const CudaContext& cuda, ProcessGroup& processes) {
  return std::make_unique<HostGroup>(cuda, processes);
}

}  // namespace rk
