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
//                                (texts); bad_images (int64) if there are any;
//                                loss_scale (float64), updates and good_steps (int64) if the loss
//                                is scaled
//   root attributes              format, version, arch, pool, gem_p, dim, stride_in_1x1,
//                                input_mean, input_std, input_scale, channel_order, resize,
//                                interpolation (default: bilinear), crop, exif ("turn", only if
//                                pictures are turned upright), source_sha256 (64 hexadecimal digits
//                                or empty)
//
// Errors are InputErrors that name the file and all tensors that do not fit; OtherVersion if the
// file is of another version of the format.
#pragma once

#include "weights/hdf5/file.h"
#include "weights/sealed_file.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rk {

// The value of the attribute `format` of every checkpoint.
inline constexpr const char* kCheckpointFormat = "rankine-checkpoint";

// The largest embedding dimension, and the largest side that pictures are resized to.
inline constexpr int kMostDim = 65536, kMostSide = 8192;
// Limits of input_mean and input_std for pixels in 0..1: far beyond any sensible value, and far
// from the limits of float32.
inline constexpr double kMostInput = 1e6, kLeastInputStd = 1e-6;

// Limits of gem_p. The gradient raises a rounded quotient to p - 1, which multiplies its error by
// p, and a GPU takes the power 1/p of a mean of float32: beyond these limits digits are lost, and
// the pooling is as good as the maximum, or the geometric mean.
inline constexpr double kLeastGemP = 0.01, kMostGemP = 1000;

// What is needed to rebuild the network and to prepare its input.
struct ModelDescription {
  std::string arch = "resnet50";
  std::string pool = "avg";
  double gem_p = 3.0;
  std::int64_t dim = 512;  // of the embedding; 0: no embedding layer, outputs pooled features
  bool stride_in_1x1 = false;
  std::array<double, 3> input_mean = {0.485, 0.456, 0.406};  // of values divided by input_scale
  std::array<double, 3> input_std = {0.229, 0.224, 0.225};
  double input_scale = 255.0;
  std::string channel_order = "RGB";
  std::int64_t resize = 256;               // short side before the centre crop
  std::string interpolation = "bilinear";  // of the resize, with antialiasing
  std::int64_t crop = 224;
  bool upright = false;       // pictures are turned according to their EXIF orientation
  std::string source_sha256;  // of the run's initial weights; empty: from scratch
};

// State of a run with loss scaling (fp16), in which not every step is an update.
struct LossScaleState {
  std::int64_t updates = 0;  // of the optimizer
  double scale = 0;          // 0: the run has none
  std::int64_t good_steps = 0;
};

// Throws InputError "<path>: ..." unless such a network can be built and fed.
void check_model(const ModelDescription& model, const std::string& path);

// The largest count of steps, epochs and so on; a file with a larger one is refused.
inline constexpr std::int64_t kMostCounted = std::int64_t{1} << 60;

// The progress of a run: `epoch` epochs are complete, and `batch` batches of the next one.
struct RunState {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  std::int64_t batch = 0;
  std::uint64_t seed = 0;
  double best = -1.0;  // the best value so far of the metric that chooses best.h5; -1: none yet
  // Complete epochs since `best` was reached; 0 in older files, which do not record this.
  std::int64_t since_best = 0;
  double loss_sum = 0.0;  // over the batches of the current epoch
  std::string data;       // identifies the training set: Dataset::identity()
  // Identifies the data that best.h5 was chosen on; empty in older files, which do not record this.
  std::string held_out;
  std::string environment;  // what the last bits also depend on: version, machine
  std::string settings;
  std::vector<std::string> history;
  // Names of all classes that the network has been trained on, in this run and in earlier runs that
  // its weights come from: merged classes and the classes they were merged from. Empty in older
  // files, which do not record this.
  std::vector<std::string> classes;
  // Indices of the pictures that cannot be read, in the order in which they were met.
  std::vector<std::int64_t> bad_images;
  LossScaleState loss_scale;
};

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
  // Throws InputError if there is no parameter of that name and shape.
  void loss_parameter(const TensorName& tensor, float* out) const;
  std::int64_t memory_rows() const;  // 0: the run kept no memory
  // Fills memory_rows() rows; returns `next`.
  std::int64_t memory(std::int64_t dim, float* embeddings, std::int64_t* labels,
                      std::int64_t* image_ids) const;
  void optimizer_state(const std::string& state, const TensorName& tensor, float* out) const;

 private:
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
