// In place of engine/group/nccl/nccl.cpp: the functions of NCCL that NcclGroup calls, between the
// emulated GPUs of a process's threads.
//
// A GPU brings its part as soon as its host puts the collective on a stream, since the host may be
// the only one to carry work out while others wait for it. The result comes as late as CUDA allows
// and is NaN until then: this finds code that reads it earlier or writes to it.
#include "engine/group/nccl/nccl.h"
#include "engine/base/integers.h"

#include "engine/base/error.h"
#include "tests/host_gpu/cuda/memory.h"
#include "tests/host_gpu/cuda/stream.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace rk::host_gpu {

using Floats = std::vector<float>;

// Where the ranks of a communicator meet.
class World {
 public:
  explicit World(int size) : size_(static_cast<std::size_t>(size)) {}

  int size() const { return static_cast<int>(size_); }
  // Each rank numbers its collectives in its own order.
  void bring(std::uint64_t number, int rank, Floats part) {
    const std::lock_guard lock(mutex_);
    Parts& parts = brought_[number];
    parts.of_rank.resize(size_);
    parts.of_rank[at(rank)] = std::move(part);
    ++parts.brought;
    changed_.notify_all();
  }
  // Every rank's part, once all are there.
  std::vector<Floats> take(std::uint64_t number) {
    std::unique_lock lock(mutex_);
    Parts& parts = brought_[number];
    changed_.wait(lock, [&] { return aborted_ || parts.brought == size_; });
    if (aborted_) fail<DeviceError>("[NCCL] a communicator was aborted");
    std::vector<Floats> all = parts.of_rank;
    for (const Floats& part : all) {
      if (part.size() == all.front().size()) continue;
      fail<DeviceError>("[NCCL] ranks brought {} and {} numbers", all.front().size(), part.size());
    }
    if (++parts.taken == size_) brought_.erase(number);
    return all;
  }
  void abort() {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    changed_.notify_all();
  }
  // Returns when all ranks have come.
  void arrive() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return arrived_ == size_; });
  }

 private:
  struct Parts {
    std::vector<Floats> of_rank;
    std::size_t brought = 0, taken = 0;
  };

  std::size_t size_, arrived_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, Parts> brought_;
  bool aborted_ = false;
};

// One rank's place in it.
struct Member {
  std::shared_ptr<World> world;
  int rank = 0;
  std::uint64_t brought = 0, taken = 0;  // collectives
  bool refuses = false;                  // after a capture that was thrown away, as NCCL may
};

// A collective on a stream, or in a capture of it.
struct Collective {
  std::shared_ptr<Member> member;
  bool ran = false;

  explicit Collective(std::shared_ptr<Member> of) : member(std::move(of)) {}
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;
  ~Collective() {
    if (!ran) member->refuses = true;
  }
};

}  // namespace rk::host_gpu

struct ncclComm {
  std::shared_ptr<rk::host_gpu::Member> member;
};

namespace rk {
namespace {

using namespace host_gpu;

struct Worlds {
  std::mutex mutex;
  std::uint64_t ids = 0;
  std::map<std::uint64_t, std::weak_ptr<World>> by_id;
};

Worlds& worlds() {
  static Worlds all;
  return all;
}

std::uint64_t number_of(const ncclUniqueId& id) {
  std::uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof(number));
  return number;
}

// Writes what comes of all parts.
using Result = std::function<void(const std::vector<Floats>&, std::span<float>)>;

ncclResult_t put_collective(const std::shared_ptr<Member>& member, std::span<const float> own,
                            std::span<float> out, CudaStream stream, const Result& result) {
  if (member->refuses) return ncclInvalidUsage;
  expect_kind(Kind::kDevice, own.data(), own.size_bytes(), "collective, its own part");
  expect_kind(Kind::kDevice, out.data(), out.size_bytes(), "collective, its result");
  const auto collective = std::make_shared<Collective>(member);
  put_at_once(stream, [=] {
    collective->ran = true;
    member->world->bring(member->brought++, member->rank, {own.begin(), own.end()});
    fill_with_nan(out.data(), out.size_bytes());
  });
  put(
      stream,
      [=] {
        if (!std::ranges::all_of(out, [](float value) { return std::isnan(value); })) {
          fail<DeviceError>("[NCCL] somebody wrote to a collective's result before it came");
        }
        result(member->world->take(member->taken++), out);
      },
      true);
  return ncclSuccess;
}

ncclResult_t get_unique_id(ncclUniqueId* id) {
  Worlds& all = worlds();
  const std::lock_guard lock(all.mutex);
  const std::uint64_t number = ++all.ids;
  std::memcpy(id->internal, &number, sizeof(number));
  return ncclSuccess;
}

ncclResult_t init_rank(ncclComm_t* communicator, int size, ncclUniqueId id, int rank) {
  std::shared_ptr<World> world;
  {
    Worlds& all = worlds();
    const std::lock_guard lock(all.mutex);
    std::weak_ptr<World>& known = all.by_id[number_of(id)];
    world = known.lock();
    if (world == nullptr) known = world = std::make_shared<World>(size);
  }
  world->arrive();
  *communicator = new ncclComm{std::make_shared<Member>(Member{world, rank})};
  return ncclSuccess;
}

ncclResult_t destroy(ncclComm_t communicator) {
  delete communicator;
  return ncclSuccess;
}

ncclResult_t abort_all(ncclComm_t communicator) {
  communicator->member->world->abort();
  return destroy(communicator);
}

ncclResult_t all_gather(const void* own, void* all, std::size_t count, ncclDataType_t,
                        ncclComm_t communicator, cudaStream_t stream) {
  const auto size = static_cast<std::size_t>(communicator->member->world->size());
  return put_collective(communicator->member, {static_cast<const float*>(own), count},
                        {static_cast<float*>(all), size * count}, stream,
                        [](const std::vector<Floats>& parts, std::span<float> out) {
                          auto place = out.begin();
                          for (const Floats& part : parts)
                            place = std::ranges::copy(part, place).out;
                        });
}

ncclResult_t all_reduce(const void* own, void* sum, std::size_t count, ncclDataType_t, ncclRedOp_t,
                        ncclComm_t communicator, cudaStream_t stream) {
  return put_collective(communicator->member, {static_cast<const float*>(own), count},
                        {static_cast<float*>(sum), count}, stream,
                        [](const std::vector<Floats>& parts, std::span<float> out) {
                          std::ranges::fill(out, 0.0F);
                          for (const Floats& part : parts) {
                            for (std::size_t i = 0; i < out.size(); ++i) out[i] += part.at(i);
                          }
                        });
}

const char* error_string(ncclResult_t) { return "an error"; }

}  // namespace

Nccl::Nccl()
    : get_unique_id(rk::get_unique_id),
      init_rank(rk::init_rank),
      destroy(rk::destroy),
      abort(abort_all),
      all_gather(rk::all_gather),
      all_reduce(rk::all_reduce),
      error_string(rk::error_string) {}

void Nccl::check(ncclResult_t result, const char* what) const {
  if (result != ncclSuccess) fail<DeviceError>("[{}] {}", what, error_string(result));
}

}  // namespace rk
