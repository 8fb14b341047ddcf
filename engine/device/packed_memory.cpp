#include "engine/device/packed_memory.h"
#include "engine/device/pinned_buffer.h"

#include <algorithm>

namespace rk {

void PackedMemory::allocate(const Context& context) {
  device_ = context.allocate(bytes_);
  context.clear(device_.data(), bytes_);
  if (!context.on_gpu()) return;
  for (Sending& sending : sendings_) {
    sending.host = PinnedBuffer(bytes_);
    std::fill_n(sending.host.as<std::byte>(), bytes_, std::byte{0});
    sending.sent.emplace(context);
  }
}

void PackedMemory::begin() {
  turn_ = 1 - turn_;
  if (sendings_[turn_].sent) sendings_[turn_].sent->wait();
}

void PackedMemory::send(const Context& context) {
  Sending& sending = sendings_[turn_];
  if (!sending.sent) return;
  context.upload(device_.data(), host_data(), bytes_);
  sending.sent->set();
}

}  // namespace rk
