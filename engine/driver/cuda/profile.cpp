#include "engine/driver/profile.h"

#include <nvtx3/nvToolsExt.h>

#include <mutex>
#include <unordered_map>

namespace rk {
namespace {

// NVTX looks for a profiler when the first of its functions is called, and creates no domain if
// there is none. Names are registered, because Nsight Systems starts a capture only at registered
// ones.
class Domain {
 public:
  static Domain& instance() {
    static Domain domain;
    return domain;
  }
  bool watched() const { return handle_ != nullptr; }

  void push(const std::string& name) {
    nvtxEventAttributes_t attributes = {};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    attributes.message.registered = registered(name);
    nvtxDomainRangePushEx(handle_, &attributes);
  }
  void pop() { nvtxDomainRangePop(handle_); }

 private:
  nvtxStringHandle_t registered(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto [entry, added] = names_.try_emplace(name, nullptr);
    if (added) entry->second = nvtxDomainRegisterStringA(handle_, name.c_str());
    return entry->second;
  }

  nvtxDomainHandle_t handle_ = nvtxDomainCreateA("rankine");
  std::mutex mutex_;
  std::unordered_map<std::string, nvtxStringHandle_t> names_;
};

}  // namespace

ProfileRange::ProfileRange(const std::string& name, bool wanted)
    : pushed_(wanted && Domain::instance().watched()) {
  if (pushed_) Domain::instance().push(name);
}

ProfileRange::~ProfileRange() {
  if (pushed_) Domain::instance().pop();
}

}  // namespace rk
