#include "engine/device/packed_memory.h"

#include <algorithm>

namespace rk {

void PackedMemory::plan(const Context& context) {
  device_ = context.allocate(bytes_);
  if (context.on_gpu()) host_ = PinnedBuffer(bytes_);
  std::fill_n(host_data(), bytes_, std::byte{0});
  sent_ = false;
}

void PackedMemory::begin(const Context& context) {
  if (sent_) context.synchronize();
}

void PackedMemory::send(const Context& context) {
  if (context.on_gpu()) context.upload(device_.data(), host_data(), bytes_);
  sent_ = true;
}

}  // namespace rk
