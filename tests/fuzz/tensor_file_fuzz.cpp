// Files of tensors by others: zip archives, pickle streams and tar archives of PyTorch's, and
// safetensors. What they hold is read, and looked for a ResNet; HDF5 has targets of its own.
#include "engine/error.h"
#include "weights/foreign/resnet_weights.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.find("\x89HDF\r\n\x1a\n") != std::string_view::npos) return 0;
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  try {
    const rk::TensorFile file = rk::read_tensors({begin, begin + size}, "fuzz");
    for (const rk::StoredTensor& tensor : file.tensors) {
      if (tensor.elements() > 1 << 16) continue;
      std::vector<float> space;
      const std::size_t values = rk::is_real(tensor.type) ? rk::float_values(tensor, space).size()
                                 : rk::is_integer(tensor.type)
                                     ? rk::integer_values(tensor).size()
                                     : static_cast<std::size_t>(tensor.elements());
      if (values != static_cast<std::size_t>(tensor.elements())) std::abort();
    }
    rk::findings(rk::resnet_weights(file));
  } catch (const rk::InputError&) {
    // One line that names the file, which is all that may happen.
  }
  return 0;
}
