// Embeds a data set with a network in evaluation mode: one unit row per image, in data set order.
#pragma once

#include "data/loader/loader.h"
#include "data/sources/dataset.h"
#include "engine/tape/program.h"
#include "retrieval/passes/embedding_set.h"
#include "training/network_input.h"
#include "weights/checkpoint.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rk {

struct EmbedOptions {
  int workers = 0;  // as LoaderOptions::workers
  std::int64_t cache_bytes = 0;
  bool skip_bad = false;  // skip pictures that cannot be read, instead of failing
  std::function<void(std::int64_t images_done)> progress;
};

// The batch size to use, given the one asked for and the number of images: a larger batch than the
// images fill would compute the rest for nothing. Batches up to 64, the usual size, are kept as
// asked, because the batch size may change the last bits.
std::int64_t batch_of(std::int64_t asked, std::int64_t images);

// The evaluation program. It shares its parameters with the trainer.
class Embedder {
 public:
  // precision: used on a GPU; the CPU computes in fp32 only.
  Embedder(const Context& context, Parameters& parameters, const ModelDescription& model,
           std::int64_t batch, Precision precision = Precision::kFp32);

  // A set without rows: the dimension and the names of the classes that embeddings of `data` have.
  EmbeddingSet no_rows(const Dataset& data) const;
  // Parameters must be allocated and filled before the first call. Returns nullopt if a signal
  // asked to stop. Fills the whole set except cameras, network, exif and paths_from; bad_images()
  // lists the images left out.
  std::optional<EmbeddingSet> embed(const Dataset& data, const EmbedOptions& options);
  const std::vector<BadImage>& bad_images() const { return bad_; }
  // Plans the program (otherwise done by the first embed()) and returns the bytes reserved. Throws
  // DeviceError if the memory is not available.
  std::size_t plan();

 private:
  ModelDescription model_;
  std::int64_t batch_;
  FloatTable table_;
  Program program_;
  TensorId input_ = -1, output_ = -1;
  std::int64_t dim_ = 0;                  // of an embedding
  std::unique_ptr<NetworkInput> pixels_;  // null until plan()
  std::vector<BadImage> bad_;
};

// A checkpoint's network with its parameters, ready to embed.
class CheckpointEmbedder {
 public:
  CheckpointEmbedder(const Context& context, const Checkpoint& checkpoint, std::int64_t batch,
                     Precision precision = Precision::kFp32);
  const ModelDescription& model() const { return model_; }
  const std::string& network() const { return network_; }  // Checkpoint::network()
  // Names of the classes the network was trained on; empty: not recorded.
  const std::vector<std::string>& trained_on() const { return trained_on_; }
  // Names of the classes whose metrics chose these weights among those of several epochs; empty: no
  // such choice, or not recorded.
  const std::vector<std::string>& chosen_on() const { return chosen_on_; }
  // Both sets record which network made them.
  EmbeddingSet no_rows(const Dataset& data) const;
  std::optional<EmbeddingSet> embed(const Dataset& data, const EmbedOptions& options);
  const std::vector<BadImage>& bad_images() const { return embedder_->bad_images(); }

 private:
  ModelDescription model_;
  std::string network_;
  std::vector<std::string> trained_on_;
  std::vector<std::string> chosen_on_;
  Parameters parameters_;
  std::unique_ptr<Embedder> embedder_;
};

}  // namespace rk
