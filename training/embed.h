// A data set through a network in evaluation mode: one unit row an image, in the data set's order.
#pragma once

#include "data/loader/loader.h"
#include "data/sources/dataset.h"
#include "engine/tape/program.h"
#include "retrieval/passes/embedding_set.h"
#include "training/network_input.h"
#include "weights/checkpoint.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rk {

struct EmbedOptions {
  int workers = 2;
  std::int64_t cache_bytes = 0;
  bool skip_bad = false;  // leave pictures that cannot be read out, instead of failing
  std::function<void(std::int64_t images_done)> progress;
};

// How many images at a time, of `asked`, where there are `images`: the rest of a batch would be
// computed for nothing. Up to 64, the usual batch, it is as asked, for its size may change the last
// bits.
std::int64_t batch_of(std::int64_t asked, std::int64_t images);

// The evaluation program over parameters that it shares with whoever trains them.
class Embedder {
 public:
  // precision: of a GPU; the CPU has fp32 alone.
  Embedder(const Context& context, Parameters& parameters, const ModelDescription& model,
           std::int64_t batch, Precision precision = Precision::kFp32);

  // Parameters must be allocated and filled before the first call. nullopt when a signal asked to
  // stop. Fills all but cameras and network; bad_images() says what was left out.
  std::optional<EmbeddingSet> embed(const Dataset& data, const EmbedOptions& options);
  const std::vector<BadImage>& bad_images() const { return bad_; }
  // Plans the program (done by the first embed() otherwise) and says how many bytes it reserved.
  // DeviceError where they are not there.
  std::size_t plan();

 private:
  ModelDescription model_;
  std::int64_t batch_;
  FloatTable table_;
  Program program_;
  TensorId input_ = -1, output_ = -1;
  std::int64_t dim_ = 0;  // of an embedding
  std::unique_ptr<NetworkInput> pixels_;
  bool planned_ = false;
  std::vector<BadImage> bad_;
};

// A checkpoint's network with its parameters, ready to embed.
class CheckpointEmbedder {
 public:
  CheckpointEmbedder(const Context& context, const Checkpoint& checkpoint, std::int64_t batch,
                     Precision precision = Precision::kFp32);
  const ModelDescription& model() const { return model_; }
  const std::string& network() const { return network_; }  // Checkpoint::network()
  // The classes that it was trained on, by name; empty: not recorded.
  const std::vector<std::string>& trained_on() const { return trained_on_; }
  // Of the images whose metrics chose these weights among those of several epochs
  // (Dataset::identity()); empty: none did, or it is not recorded.
  const std::string& chosen_on() const { return chosen_on_; }
  // The set says which network made it.
  std::optional<EmbeddingSet> embed(const Dataset& data, const EmbedOptions& options);
  const std::vector<BadImage>& bad_images() const { return embedder_->bad_images(); }

 private:
  ModelDescription model_;
  std::string network_;
  std::vector<std::string> trained_on_;
  std::string chosen_on_;
  Parameters parameters_;
  std::unique_ptr<Embedder> embedder_;
};

}  // namespace rk
