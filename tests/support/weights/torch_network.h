// A network of the registry as torch.save() would write it.
#pragma once

#include "tests/support/weights/torch_writer.h"
#include "weights/architectures/network_tensors.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace rk {

using Rename = std::function<std::string(const std::string&)>;

// Values that differ between tensors and places. A network with them computes finite embeddings.
std::vector<float> made_up_values(const NetworkTensor& tensor);

constexpr std::int64_t kMadeUpCount = 3;  // of the batches that the network has seen

// All its tensors as torchvision names them; with `classes`, also a classifier of so many.
TorchContent torch_network(const std::string& arch, std::int64_t classes = 0);
TorchContent torch_network(const std::string& arch, const Rename& rename, std::int64_t classes = 0);

}  // namespace rk
