// The input of a loss, from an HDF5 file: /embeddings [N, D] and /labels [N], and, if present,
// /identities, /memory_embeddings [M, D], /memory_labels, /memory_identities and /proxies [C, D];
// or /scores and /targets [N, C]. Anything else in the file is ignored. Or from .npy, .npz or
// safetensors: embeddings and labels as retrieval/files/read_rows.h finds them, the others by the
// names above; float64 is rounded to float32. Errors: InputError naming the file.
#pragma once

#include "losses/registry.h"

#include <cstdint>
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
  std::vector<std::int64_t> image_ids;
  std::vector<S> memory_embeddings;
  std::vector<std::int64_t> memory_labels;
  std::vector<std::int64_t> memory_image_ids;
  std::vector<S> proxies;
  std::vector<S> scores;
  std::vector<std::uint8_t> targets;
  std::string text;  // how embeddings of numpy's were read: "npy, float32; labels: y.npy, int64"

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

// Reads the input that a loss of this kind needs. `path`: FILE, or FILE:NAME for the embeddings of
// that name; `labels`: a file of labels (retrieval/files/labels.h), empty if they are in FILE.
template <class S>
LossData<S> read_loss_file(const std::string& path, LossKind kind, const std::string& labels = "");

}  // namespace rk
