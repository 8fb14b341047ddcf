// The state of a run in one file: last.h5, best.h5. HDF5, sealed (weights/sealed_file.h); equal
// states give equal bytes. Imported weights are a checkpoint without /run, which may hold a
// classifier (fc.weight, fc.bias) besides the tensors of the network.
//
//   /weights/<torchvision name>  float32 parameters and running statistics (convolutions OIHW),
//                                int64 scalars for num_batches_tracked
//   /loss/<name>                 float32, learned parameters of the loss: proxies [C, D]
//   /optimizer/<state>/<name>    float32 like the parameter of that name (exp_avg,
//                                momentum_buffer)
//   /memory/...                  the embeddings [M, D] float32, labels and identities [M] int64 of
//                                the last batches, and `next` (int64), the row that the next batch
//                                is written to; only if the run keeps an embedding memory
//   /run/...                     step, epoch, batch, since_best (int64), seed (uint64 as int64),
//                                best, loss_sum (float64), data, held_out, environment (text),
//                                settings (JSON text), history (one JSON text per epoch), classes
//                                (texts); held_out_classes (texts) and bad_images (int64) if there
//                                are any;
//                                loss_scale (float64), updates and good_steps (int64) if the loss
//                                is scaled
//   root attributes              format, version, arch, pool, gem_p, dim, stride_in_1x1,
//                                input_mean, input_std, input_scale, channel_order, resize,
//                                interpolation (default: bilinear), crop, stretch (1, only if
//                                pictures are resized to a square), exif ("turn", only if they are
//                                turned upright), source_sha256 (64 hexadecimal digits or empty),
//                                written_by (weights/written_by.h)
//
// Errors are InputErrors that name the file and all tensors that do not fit; OtherVersion if the
// file is of another version of the format.
#pragma once

#include "weights/hdf5/file.h"
#include "weights/model_description.h"
#include "weights/run_state.h"
#include "weights/sealed_file.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rk {

// The value of the attribute `format` of every checkpoint.
inline constexpr const char* kCheckpointFormat = "rankine-checkpoint";

// Far beyond any network's parameters, and far below values whose sums overflow to both sides at
// once: those are NaN, of which a layer's ReLU may make 0.
inline constexpr float kLargestParameter = 1e12F;

// The embeddings of the last batches, as training/embedding_memory.h keeps them.
struct MemoryColumns {
  std::int64_t dim = 0;
  std::int64_t next = 0;
  std::span<const float> embeddings;  // [M, dim]
  std::span<const std::int64_t> labels, image_ids;
};

class CheckpointWriter {
 public:
  // For weights alone; `expected_bytes` as in Hdf5Writer.
  explicit CheckpointWriter(const ModelDescription& model, std::size_t expected_bytes = 0);
  CheckpointWriter(const ModelDescription& model, const RunState& run);

  void weight(const std::string& name, const std::vector<std::int64_t>& dims, const float* values);
  void counter(const std::string& name, std::int64_t value);
  void loss_parameter(const std::string& name, const std::vector<std::int64_t>& dims,
                      const float* values);
  void memory(const MemoryColumns& columns);
  void optimizer_state(const std::string& state, const std::string& name,
                       const std::vector<std::int64_t>& dims, const float* values);

  // Returns the sealed file; the writer is empty afterwards.
  std::vector<std::byte> finish();

 private:
  Hdf5Writer file_;
};

struct TensorName {
  std::string name;
  std::vector<std::int64_t> dims;
};

class Checkpoint {
 public:
  // Reads and checks the whole file: the seal, the schema, that every weight is finite and that no
  // variance is negative.
  explicit Checkpoint(const std::string& path);
  // The same of a file whose seal was checked before; throws InputError if another file has
  // replaced it since.
  Checkpoint(const std::string& path, const Seal& seal);
  // The same for the result of CheckpointWriter::finish(); `path` is for messages.
  Checkpoint(const std::string& path, std::span<const std::byte> file);
  // The same without the seal, from an open reader; `sha256` is the digest of the file.
  Checkpoint(Hdf5Reader file, std::string sha256);

  const std::string& path() const { return path_; }
  const ModelDescription& model() const { return model_; }
  bool has_run() const { return has_run_; }
  const RunState& run() const { return run_; }           // default RunState if the file has none
  const std::string& sha256() const { return sha256_; }  // of the whole file, as sha256sum gives
  // Identifies the network, in hexadecimal: the SHA-256 of its description (without interpolation,
  // upright and source_sha256) and of its float weights, independent of anything else in the file.
  std::string network() const;

  // Throws InputError unless the file holds exactly `weights` (float32) and `counters`, naming all
  // tensors that are missing, unexpected or of another shape. Names that begin with one of
  // `optional` are exempt.
  void require(const std::vector<TensorName>& weights, const std::vector<std::string>& counters,
               const std::vector<std::string>& optional = {}) const;

  // Whether there is a weight of that name and shape.
  bool has_weight(const TensorName& tensor) const;
  std::optional<std::vector<std::int64_t>> weight_dims(const std::string& name) const;
  void weight(const TensorName& tensor, float* out) const;
  std::vector<float> weight(const std::string& name) const;  // of any shape
  // As Hdf5Reader::visit.
  void visit_weight(const std::string& name, const Hdf5Reader::Use<float>& use) const;
  std::int64_t counter(const std::string& name) const;
  std::optional<std::vector<std::int64_t>> loss_dims(const std::string& name) const;
  // Throws InputError if there is no parameter of that name and shape.
  void loss_parameter(const TensorName& tensor, float* out) const;
  std::int64_t memory_rows() const;  // 0: the run kept no memory
  // Fills memory_rows() rows; returns `next`.
  std::int64_t memory(std::int64_t dim, float* embeddings, std::int64_t* labels,
                      std::int64_t* image_ids) const;
  void optimizer_state(const std::string& state, const TensorName& tensor, float* out) const;

 private:
  std::optional<std::vector<std::int64_t>> dims_of(const std::string& path) const;
  void read_model();
  void read_run();
  void check_values() const;

  std::string path_;
  std::string sha256_;
  Hdf5Reader file_;
  ModelDescription model_;
  RunState run_;
  bool has_run_ = false;
};

}  // namespace rk
