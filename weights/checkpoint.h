// A run's state in one file: last.h5, best.h5. HDF5, sealed (weights/sealed_file.h), equal states
// give equal bytes. Weights that come from elsewhere are a checkpoint without /run, which may hold
// a classifier (fc.weight, fc.bias) beside what the network is made of.
//
//   /weights/<torchvision name>  float32 parameters and running statistics (convolutions OIHW),
//                                int64 scalars for num_batches_tracked
//   /loss/<name>                 float32, what the loss learns: proxies [C, D]
//   /optimizer/<state>/<name>    float32 like the parameter of that name (exp_avg,
//                                momentum_buffer)
//   /memory/...                  the embeddings [M, D] float32, labels and identities [M] int64 of
//                                the last batches, and `next` (int64), the row at which the next
//                                batch goes in; only where a run keeps some
//   /run/...                     step, epoch, batch, since_best (int64), seed (uint64 as int64),
//                                best, loss_sum (float64), data, held_out, environment (text),
//                                settings (JSON text), history (one JSON text an epoch), classes
//                                (texts); bad_images (int64) where there are some;
//                                loss_scale (float64), updates and good_steps (int64) where the
//                                loss is scaled
//   root attributes              format, version, arch, pool, gem_p, dim, stride_in_1x1,
//                                input_mean, input_std, input_scale, channel_order, resize,
//                                interpolation (bilinear where there is none), crop,
//                                source_sha256 (64 hexadecimal digits or nothing)
//
// Errors are InputErrors that name the file and, where tensors do not fit, all of them.
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

// The attribute `format` of each.
inline constexpr const char* kCheckpointFormat = "rankine-checkpoint";

// Numbers in an embedding, and the side that pictures are resized to, at most.
inline constexpr int kMostDim = 65536, kMostSide = 8192;
// What may be subtracted from pixels in 0..1, and what they may be divided by: far beyond what
// anybody means, and far from where float32 ends.
inline constexpr double kMostInput = 1e6, kLeastInputStd = 1e-6;

// What it takes to build the network again and to feed it.
struct ModelDescription {
  std::string arch = "resnet50";
  std::string pool = "avg";
  double gem_p = 3.0;
  std::int64_t dim = 512;  // of the embedding; 0: none, the pooled features are the output
  bool stride_in_1x1 = false;
  std::array<double, 3> input_mean = {0.485, 0.456, 0.406};  // of values divided by input_scale
  std::array<double, 3> input_std = {0.229, 0.224, 0.225};
  double input_scale = 255.0;
  std::string channel_order = "RGB";
  std::int64_t resize = 256;               // short side before the centre crop
  std::string interpolation = "bilinear";  // of the resize, with antialiasing
  std::int64_t crop = 224;
  bool upright = false;       // pictures are turned as their EXIF orientation says
  std::string source_sha256;  // of the weights the run began with; empty: from scratch
};

// Of a run whose loss is scaled (fp16): then not every step is an update.
struct LossScaleState {
  std::int64_t updates = 0;  // of the optimizer
  double scale = 0;          // 0: the run has none
  std::int64_t good_steps = 0;
};

// InputError "<path>: ..." unless a network can be built and fed so.
void check_model(const ModelDescription& model, const std::string& path);

// Steps, epochs and the like: a file that counts further is refused.
inline constexpr std::int64_t kMostCounted = std::int64_t{1} << 60;

// Where the run is: `epoch` epochs are complete, and `batch` batches of the next one.
struct RunState {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  std::int64_t batch = 0;
  std::uint64_t seed = 0;
  double best = -1.0;  // the best value so far of the metric that chooses best.h5; -1: none yet
  // Epochs complete since that one; 0 in files from before this was recorded.
  std::int64_t since_best = 0;
  double loss_sum = 0.0;  // over the batches of the epoch under way
  std::string data;       // what the training set was: a fingerprint
  // What best.h5 was chosen on, likewise; empty in files from before this was recorded.
  std::string held_out;
  std::string environment;  // what the last bits depend on beside the settings: version, machine
  std::string settings;
  std::vector<std::string> history;
  // Names of all classes that the network has been trained on, in this run and those before it
  // whose weights it began with, merged ones and those they were made of; empty in files from
  // before this was recorded.
  std::vector<std::string> classes;
  // Pictures of the data that cannot be read, by their places, in the order they were met.
  std::vector<std::int64_t> bad_images;
  LossScaleState loss_scale;
};

// The embeddings of the last batches, as training/embedding_memory.h keeps them.
struct MemoryColumns {
  std::int64_t dim = 0;
  std::int64_t next = 0;
  std::span<const float> embeddings;  // [M, dim]
  std::span<const std::int64_t> labels, identities;
};

class CheckpointWriter {
 public:
  // Weights alone; `expected_bytes` as Hdf5Writer takes it.
  explicit CheckpointWriter(const ModelDescription& model, std::size_t expected_bytes = 0);
  CheckpointWriter(const ModelDescription& model, const RunState& run);

  void weight(const std::string& name, const std::vector<std::int64_t>& dims, const float* values);
  void counter(const std::string& name, std::int64_t value);
  void loss_parameter(const std::string& name, const std::vector<std::int64_t>& dims,
                      const float* values);
  void memory(const MemoryColumns& columns);
  void optimizer_state(const std::string& state, const std::string& name,
                       const std::vector<std::int64_t>& dims, const float* values);

  // The sealed file; the writer is empty afterwards.
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
  // Reads and checks the whole file: seal, schema, and every weight a finite number, no variance
  // negative.
  explicit Checkpoint(const std::string& path);
  // The same of what CheckpointWriter::finish() gave; `path` is for messages.
  Checkpoint(const std::string& path, std::span<const std::byte> file);
  // The same but for the seal, of what a reader reads; `sha256` is that of the file.
  Checkpoint(Hdf5Reader file, std::string sha256);

  const std::string& path() const { return path_; }
  const ModelDescription& model() const { return model_; }
  bool has_run() const { return has_run_; }
  const RunState& run() const { return run_; }           // of no step, where the file has none
  const std::string& sha256() const { return sha256_; }  // of the whole file, as others compute it
  // What tells this network from others, in hexadecimal: the SHA-256 of what it is made of and of
  // its weights, whatever else the file holds.
  std::string network() const;

  // Throws unless the file holds exactly `weights` (float32) and `counters`, naming what is
  // missing, not expected, or of another shape. Names that begin with one of `optional` may be any
  // of that.
  void require(const std::vector<TensorName>& weights, const std::vector<std::string>& counters,
               const std::vector<std::string>& optional = {}) const;

  // Is there one of that name and shape?
  bool has_weight(const TensorName& tensor) const;
  std::optional<std::vector<std::int64_t>> weight_dims(const std::string& name) const;
  void weight(const TensorName& tensor, float* out) const;
  std::vector<float> weight(const std::string& name) const;  // whatever its shape
  // As Hdf5Reader::visit.
  void visit_weight(const std::string& name, const Hdf5Reader::Use<float>& use) const;
  std::int64_t counter(const std::string& name) const;
  // InputError where there is none of that shape.
  void loss_parameter(const TensorName& tensor, float* out) const;
  std::int64_t memory_rows() const;  // 0: the run kept no memory
  // Into memory_rows() rows; returns `next`.
  std::int64_t memory(std::int64_t dim, float* embeddings, std::int64_t* labels,
                      std::int64_t* identities) const;
  void optimizer_state(const std::string& state, const TensorName& tensor, float* out) const;

 private:
  Checkpoint(const std::string& path, const Seal& seal);
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
