// Memory of a context's device: the host's (Buffer) or a GPU's (DeviceBuffer). Uninitialised,
// move-only, freed with its owner. Made by Context::allocate.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>

namespace rk {

class Memory {
 public:
  Memory() = default;
  template <class Owner> static Memory of(Owner&& owner, std::byte* data, std::size_t bytes) {
    Memory memory;
    memory.owner_ = std::make_shared<Owner>(std::forward<Owner>(owner));
    memory.data_ = data;
    memory.bytes_ = bytes;
    // A Buffer is host memory, copied by memcpy; a DeviceBuffer brings its own copies.
    if constexpr (requires { owner.upload(nullptr, bytes); }) {
      memory.upload_ = [](void* self, const void* from, std::size_t count) {
        static_cast<Owner*>(self)->upload(from, count);
      };
      memory.download_ = [](const void* self, void* to, std::size_t count) {
        static_cast<const Owner*>(self)->download(to, count);
      };
    }
    return memory;
  }
  Memory(Memory&&) = default;
  Memory& operator=(Memory&&) = default;

  std::byte* data() const { return data_; }
  template <class T> T* as() const { return reinterpret_cast<T*>(data_); }
  std::size_t bytes() const { return bytes_; }

  // Blocking copies of the first `bytes` from and to the host, for set-up, saving and tests.
  void upload(const void* from, std::size_t bytes) {
    if (bytes == 0) return;  // an empty range may have a null address
    upload_ != nullptr ? upload_(owner_.get(), from, bytes)
                       : static_cast<void>(std::memcpy(data_, from, bytes));
  }
  void download(void* to, std::size_t bytes) const {
    if (bytes == 0) return;
    download_ != nullptr ? download_(owner_.get(), to, bytes)
                         : static_cast<void>(std::memcpy(to, data_, bytes));
  }

 private:
  std::shared_ptr<void> owner_;  // knows how to free itself
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  void (*upload_)(void*, const void*, std::size_t) = nullptr;
  void (*download_)(const void*, void*, std::size_t) = nullptr;
};

}  // namespace rk
