// What a profiler sees of ProfileRange. This program contains a profiler of its own: NVTX looks for
// the symbol below if no other profiler is attached.
#define NVTX_NO_IMPL
#include "engine/driver/profile.h"

#include <gtest/gtest.h>
#include <nvtx3/nvToolsExt.h>

#include <string>
#include <vector>

namespace rk {
namespace {

struct Seen {
  std::vector<std::string> domain_names, names;  // a handle is an index + 1
  std::vector<std::string> events;
};
Seen& seen() {
  static Seen seen;
  return seen;
}

template <class Handle> Handle handle_of(std::size_t index) {
  return reinterpret_cast<Handle>(index + 1);  // NOLINT: not a pointer to anything
}
template <class Handle>
const std::string& at(const std::vector<std::string>& names, Handle handle) {
  return names.at(reinterpret_cast<std::size_t>(handle) - 1);
}

nvtxDomainHandle_t create(const char* name) {
  seen().domain_names.emplace_back(name);
  return handle_of<nvtxDomainHandle_t>(seen().domain_names.size() - 1);
}
nvtxStringHandle_t register_string(nvtxDomainHandle_t, const char* name) {
  seen().names.emplace_back(name);
  return handle_of<nvtxStringHandle_t>(seen().names.size() - 1);
}
int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* what) {
  EXPECT_EQ(what->messageType, NVTX_MESSAGE_TYPE_REGISTERED);
  seen().events.push_back(at(seen().domain_names, domain) + " " +
                          at(seen().names, what->message.registered));
  return 0;
}
int pop(nvtxDomainHandle_t domain) {
  seen().events.push_back(at(seen().domain_names, domain) + " end");
  return 0;
}

int attach(NvtxGetExportTableFunc_t table) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable functions = nullptr;
  unsigned int size = 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &functions, &size) == 0) return 0;
  *functions[NVTX_CBID_CORE2_DomainCreateA] = reinterpret_cast<NvtxFunctionPointer>(create);
  *functions[NVTX_CBID_CORE2_DomainRegisterStringA] =
      reinterpret_cast<NvtxFunctionPointer>(register_string);
  *functions[NVTX_CBID_CORE2_DomainRangePushEx] = reinterpret_cast<NvtxFunctionPointer>(push);
  *functions[NVTX_CBID_CORE2_DomainRangePop] = reinterpret_cast<NvtxFunctionPointer>(pop);
  return 1;
}

}  // namespace
}  // namespace rk

extern "C" {
// NOLINTNEXTLINE(readability-identifier-naming): NVTX looks for that name
NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = rk::attach;
}

namespace rk {
namespace {

TEST(ProfileRange, AProfilerSeesThemNested) {
  seen().events.clear();
  {
    const ProfileRange step("step"), warm_up("warm-up", false);
    for (const char* node : {"conv1", "bn1"}) const ProfileRange range(node);
  }
  EXPECT_EQ(seen().events, (std::vector<std::string>{"rankine step", "rankine conv1", "rankine end",
                                                     "rankine bn1", "rankine end", "rankine end"}));
}

// A step is thousands of ranges with the same few hundred names.
TEST(ProfileRange, NamesAreRegisteredOnce) {
  { const ProfileRange range("layer1.0.conv1"); }
  const std::size_t names = seen().names.size();
  for (int i = 0; i < 3; ++i) const ProfileRange range("layer1.0.conv1");
  EXPECT_EQ(seen().names.size(), names);
  EXPECT_EQ(seen().domain_names.size(), 1U);
}

}  // namespace
}  // namespace rk
