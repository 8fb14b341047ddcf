// The input of a loss, from an HDF5 file: /embeddings [N, D] and /labels [N], and, if present,
// /identities, /memory_embeddings [M, D], /memory_labels, /memory_identities and /proxies [C, D];
// or /scores and /targets [N, C]. Anything else in the file is ignored. Errors: InputError naming
// the file.
#pragma once

#include "losses/registry.h"

#include <string>
#include <vector>

namespace rk {

template <class S> struct LossData {
  std::int64_t rows = 0;
  std::int64_t dim = 0;
  std::int64_t memory = 0;
  std::int64_t classes = 0;
  std::vector<S> embeddings;
  std::vector<std::int64_t> labels;
  std::vector<std::int64_t> identities;
  std::vector<S> memory_embeddings;
  std::vector<std::int64_t> memory_labels;
  std::vector<std::int64_t> memory_identities;
  std::vector<S> proxies;
  std::vector<S> scores;
  std::vector<std::uint8_t> targets;

  LossInput<S> input() const;  // views of the above
  LossShape shape() const { return {rows, memory, dim, classes}; }
  // Sizes of the loss's gradients: with respect to the embeddings (or scores), and to the proxies.
  std::int64_t grad_elements(LossKind kind) const {
    return kind == LossKind::kScores ? rows * classes : rows * dim;
  }
  std::int64_t proxy_elements(LossKind kind) const {
    return kind == LossKind::kProxies ? classes * dim : 0;
  }
};

// Reads the input that a loss of this kind needs.
template <class S> LossData<S> read_loss_file(const std::string& path, LossKind kind);

}  // namespace rk
