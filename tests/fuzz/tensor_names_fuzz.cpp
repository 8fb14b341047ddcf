// libFuzzer target: names and shapes of foreign tensors, a line each ("layer1.0.bn1.bias 64"), in a
// file of PyTorch's or Keras's, chosen by the first byte. A line that begins with '{' is what the
// file says of its images.
#include "engine/base/error.h"
#include "tests/fuzz/look_through.h"
#include "weights/foreign/model_text.h"

#include <sstream>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::int64_t kMost = 3 << 20;  // elements: more than any tensor of a ResNet has
  static const std::vector<float> kZeros(kMost);
  if (size == 0) return 0;
  std::istringstream text(std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  rk::TensorFile file;
  file.path = "fuzz";
  if ((data[0] & 1) != 0) file.kind = rk::TensorFile::Kind::kKeras;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with('{')) {
      file.metadata[rk::kModelKey] = line;
      continue;
    }
    std::istringstream words(line);
    rk::StoredTensor tensor;
    words >> tensor.name;
    std::int64_t elements = 1, side = 0;
    while (tensor.dims.size() < 8 && words >> side && side >= 0 && side <= kMost) {
      tensor.dims.push_back(side);
      if (elements <= kMost) elements *= side;
    }
    if (elements > kMost) continue;
    if (tensor.name.ends_with("num_batches_tracked")) tensor.type = rk::ElementType::kI32;
    tensor.bytes =
        std::as_bytes(std::span(kZeros)).first(static_cast<std::size_t>(elements) * sizeof(float));
    file.tensors.push_back(tensor);
  }
  try {
    rk::look_through(file);
  } catch (const rk::InputError&) {
    // Refusing the file is the only failure allowed.
  }
  return 0;
}
