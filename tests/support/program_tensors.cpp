#include "tests/support/program_tensors.h"

#include "engine/base/half.h"
#include "engine/device/pinned_buffer.h"
#include "kernels/half_element.h"
#include "tests/support/stored_images.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace rk {
namespace {

std::vector<std::byte> narrowed(const std::vector<float>& values, DType type) {
  return with_type(type, [&]<class T>() {
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const T value = Element<T>::narrow(values[i]);
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
    return bytes;
  });
}

}  // namespace

void write(const Program& program, TensorId id, const Tensor& to, const std::vector<float>& given) {
  const std::vector<std::byte> bytes = narrowed(as_stored(program, id, given), to.dtype);
  if (!program.on_gpu()) {
    std::memcpy(to.data, bytes.data(), bytes.size());
    return;
  }
  const PinnedBuffer host(bytes.size());
  std::ranges::copy(bytes, host.as<std::byte>());
  program.context().upload(to.data, host.as<std::byte>(), bytes.size());
  program.context().synchronize();
}

std::vector<float> read(const Program& program, TensorId id, const Tensor& from) {
  std::vector<std::byte> bytes(from.bytes());
  if (!program.on_gpu()) {
    std::memcpy(bytes.data(), from.data, bytes.size());
  } else {
    const PinnedBuffer host(bytes.size());
    program.context().download(host.as<std::byte>(), from.data, bytes.size());
    program.context().synchronize();
    std::copy_n(host.as<std::byte>(), bytes.size(), bytes.data());
  }
  return from_stored(program, id, widened(bytes, from.dtype).data());
}

std::vector<float> rounded_to(DType type, const std::vector<float>& values) {
  return widened(narrowed(values, type), type);
}

}  // namespace rk
