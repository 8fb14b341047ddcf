#include "engine/group/nccl/device_group.h"

#include "engine/base/error.h"
#include "engine/device/cuda/error.h"
#include "engine/group/nccl/nccl.h"
#include "engine/group/process_device.h"

#include <cuda_runtime_api.h>

#include <exception>
#include <string_view>
#include <utility>
#include <vector>

namespace rk {
namespace {

// If two processes had one GPU, NCCL would wait for ever or fail without saying why.
void refuse_shared_gpus(ProcessGroup& processes) {
  struct Card {
    std::uint64_t machine;
    char bus[24];
  };
  Card mine = {machine_id(), {}};
  int device = 0;
  check_cuda(cudaGetDevice(&device), "device");
  check_cuda(cudaDeviceGetPCIBusId(mine.bus, sizeof(mine.bus), device), "device");
  std::vector<Card> all(static_cast<std::size_t>(processes.size()));
  processes.all_gather<Card>({&mine, 1}, all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (all[i].machine != all[j].machine || std::string_view(all[i].bus) != all[j].bus) continue;
      fail<DeviceError>(
          "processes {} and {} have the same GPU, {}; start as many processes as there are GPUs", j,
          i, all[i].bus);
    }
  }
}

class NcclGroup final : public DeviceGroup {
 public:
  NcclGroup(const CudaContext& cuda, ProcessGroup& processes)
      : cuda_(cuda), processes_(processes), rank_(processes.rank()), size_(processes.size()) {
    // NCCL's few blocks must get to start while backward fills the GPU.
    int lowest = 0, highest = 0;
    check_cuda(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "stream");
    check_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, highest), "stream");
    check_cuda(cudaEventCreateWithFlags(&before_, cudaEventDisableTiming), "event");
    check_cuda(cudaEventCreateWithFlags(&after_, cudaEventDisableTiming), "event");
    connect();
  }

  ~NcclGroup() override {
    if (communicator_ != nullptr) {
      // After a failure the other processes may never reach the collective this one still waits
      // for.
      if (std::uncaught_exceptions() > 0) {
        nccl_.abort(communicator_);
      } else {
        cudaStreamSynchronize(stream_);
        nccl_.destroy(communicator_);
      }
    }
    if (after_ != nullptr) cudaEventDestroy(after_);
    if (before_ != nullptr) cudaEventDestroy(before_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void all_gather(const float* own, float* all, std::int64_t count) override {
    follow_context();
    nccl_.check(nccl_.all_gather(own, all, static_cast<std::size_t>(count), ncclFloat,
                                 communicator_, stream_),
                "all-gather");
    finish_all_reduces();
  }

  void begin_all_reduce(float* values, std::int64_t count) override {
    follow_context();
    nccl_.check(nccl_.all_reduce(values, values, static_cast<std::size_t>(count), ncclFloat,
                                 ncclSum, communicator_, stream_),
                "sum");
  }

  void finish_all_reduces() override {
    if (!std::exchange(ahead_, false)) return;
    check_cuda(cudaEventRecord(after_, stream_), "event");
    check_cuda(cudaStreamWaitEvent(cuda_.stream(), after_, 0), "event");
  }

  void renew() override {
    // Collectives that run must end in all processes: aborting one would leave its result undone.
    check_cuda(cudaStreamSynchronize(stream_), "stream");
    check_cuda(cudaStreamSynchronize(cuda_.stream()), "stream");
    ahead_ = false;
    nccl_.abort(std::exchange(communicator_, nullptr));
    connect();
  }

 private:
  void connect() {
    ncclUniqueId id = {};
    if (rank_ == 0) nccl_.check(nccl_.get_unique_id(&id), "several GPUs");
    std::vector<ncclUniqueId> ids(static_cast<std::size_t>(size_));
    processes_.all_gather<ncclUniqueId>({&id, 1}, ids);
    nccl_.check(nccl_.init_rank(&communicator_, size_, ids.front(), rank_), "several GPUs");
  }

  // Later work on our stream waits for what is on the context's stream now.
  void follow_context() {
    ahead_ = true;
    check_cuda(cudaEventRecord(before_, cuda_.stream()), "event");
    check_cuda(cudaStreamWaitEvent(stream_, before_, 0), "event");
  }

  const CudaContext& cuda_;
  ProcessGroup& processes_;
  int rank_, size_;
  Nccl nccl_;
  ncclComm_t communicator_ = nullptr;
  cudaStream_t stream_ = nullptr;  // all of NCCL's work, so that its order is the same everywhere
  cudaEvent_t before_ = nullptr, after_ = nullptr;
  bool ahead_ = false;  // our stream has work that the context's stream has not waited for
};

}  // namespace

std::unique_ptr<DeviceGroup> join_nccl(const CudaContext& cuda, ProcessGroup& processes) {
  refuse_shared_gpus(processes);  // before NCCL is loaded: a missing NCCL would not be the problem
  return std::make_unique<NcclGroup>(cuda, processes);
}

}  // namespace rk
