// The tensors that the golden network files refer to: every number is a function of a key, an index
// and a shape, so weights and images need not be stored.
//
//   seed = FNV-1a 64 of the key;  r_i = the upper 24 bits of output i of SplitMix64(seed)
//   u_i = r_i 2^-24 in [0, 1),  s_i = 2 u_i - 1;  worked out in double, rounded once to float32
//
// Tensors come in C order of PyTorch's layouts: OIHW weights, NCHW images.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rk::golden {

std::uint64_t key_seed(std::string_view key);
double unit(std::uint64_t seed, std::int64_t index);  // u_i

struct Generator {
  bool bottleneck = false;  // ResNet-50 and up: decides which gamma is the last of its branch
  std::string salt = {};    // put before every key; empty in the files of tests/golden/

  // The tensor `key` (a name of torchvision's state_dict, or embedding.*) of an initial network;
  // the rank and the name's ending decide its range.
  std::vector<float> tensor(const std::string& key, const std::vector<std::int64_t>& dims) const;
  // A batch of images (N, 3, H, W): a coarse 4 x 4 pattern with noise on it.
  std::vector<float> images(const std::string& key, std::int64_t n, std::int64_t height,
                            std::int64_t width) const;
  // dL/dE (N, D).
  std::vector<float> cotangent(const std::string& key, std::int64_t n, std::int64_t dim) const;
};

}  // namespace rk::golden
