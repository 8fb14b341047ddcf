// Everything a network learns or remembers, by name, in flat buffers. Parameters and gradients
// share offsets, so an optimizer step is one pass, a checkpoint one write, an all-reduce one call.
// Running statistics ("buffers" in PyTorch's terms) lie in a second flat buffer and have no
// gradient.
//
// A parameter is stored in the order that its layer computes with; get() and set() use the
// canonical order (OIHW for convolutions, [out, in] for linear layers), which is also the order in
// files.
//
// For a network on a GPU the same flat buffers exist a second time in GPU memory, and a step reads
// and changes only those; upload() and download() copy between the two.
#pragma once

#include "engine/base/integers.h"
#include "engine/base/shape.h"
#include "engine/device/buffer.h"
#include "engine/device/context.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rk {

// kProxies belong to the loss, not to the network.
enum class ParameterGroup : std::uint8_t { kBackbone, kEmbedding, kProxies };

// How a convolution's weight [O, I, H, W] is stored: plain OIHW; in blocks of `block` x `block`
// channels with the output channel innermost (OIhw16i16o); for the first layer, with its few input
// channels, blocked over the output channels alone (Ohwi16o); or with the input channels innermost
// (OHWI).
struct WeightOrder {
  enum class Kind : std::uint8_t { kPlain, kBlocked, kStem, kChannelsLast };
  Kind kind = Kind::kPlain;
  std::int64_t block = 0;
  bool operator==(const WeightOrder&) const = default;
};

// How a parameter starts. kNormal: standard deviation `scale`; kUniform: [-scale, scale);
// kOrthogonal: [out, in] with orthonormal rows (out <= in) or columns.
struct Initial {
  enum class Kind : std::uint8_t { kConstant, kNormal, kUniform, kOrthogonal };
  Kind kind = Kind::kConstant;
  double scale = 0;
};

using ParameterId = int;
using BufferId = int;

class Parameters {
 public:
  // Freezes the parameters whose names begin with one of these: no optimizer changes them, and a
  // program's backward computes nothing that only they would need (behind parameters that learn it
  // computes their gradients too). Must precede declare().
  void freeze(std::vector<std::string> beginnings);
  bool freezes_any() const { return !frozen_.empty(); }
  // Declaring a name again with the same shape returns the same id, so that several programs
  // (training, evaluation) record the same network over one set of parameters: first the one with
  // gradients, whose nodes own what is declared for them. After allocate(), a new name is an error.
  ParameterId declare(const std::string& name, const Shape& shape, Initial initial,
                      ParameterGroup group = ParameterGroup::kBackbone);
  // Sets how a convolution's weight is stored (default: plain). After allocate(), only the same
  // order.
  void store_as(ParameterId id, WeightOrder order);
  // A running statistic of `elements` float32 values starting at `initial`.
  BufferId declare_buffer(const std::string& name, std::int64_t elements, float initial);
  // An integer that the network counts (num_batches_tracked), starting at 0.
  BufferId declare_counter(const std::string& name);

  // Allocates on the host, and on the context's GPU if it has one. Must follow Program::lay_out()
  // of a program that has convolutions.
  void allocate(const Context& context);
  // Fills every parameter from its Initial, as a function of (seed, name) alone, whatever the
  // number of threads and on a GPU too; also sets buffers and counters, and zeroes the gradients.
  void initialise(const Context& context, std::uint64_t seed);

  // Copy parameters and running statistics from host to GPU (upload) or back (download), and wait;
  // do nothing without a GPU.
  void upload();
  void download();
  // Copies the last step's gradients to the host, for callers that look at them there.
  void download_gradients();

  // By id: the host's memory, in stored order.
  float* value(ParameterId id) const { return values_.as<float>() + entry(id).offset; }
  float* gradient(ParameterId id) const { return gradients_.as<float>() + entry(id).offset; }
  float* buffer(BufferId id) const;
  std::int64_t& counter(BufferId id);
  std::int64_t counter(BufferId id) const;

  // The flat buffers, including the padding between parameters (which stays zero).
  std::span<float> values() const { return {values_.as<float>(), flat_elements()}; }
  std::span<float> gradients() const { return {gradients_.as<float>(), flat_elements()}; }
  std::size_t flat_elements() const { return static_cast<std::size_t>(elements_); }
  // All running statistics; all counters, for tests.
  std::span<float> statistics() const {
    return {buffers_.as<float>(), static_cast<std::size_t>(buffer_elements_)};
  }
  std::span<std::int64_t> counters() { return counters_; }

  // The same in the memory the network computes in: the GPU's, or the host's without a GPU.
  float* device_value(ParameterId id) const { return device_values() + entry(id).offset; }
  float* device_gradient(ParameterId id) const { return device_gradients() + entry(id).offset; }
  float* device_buffer(BufferId id) const;
  float* device_values() const { return on_device(device_values_, values_); }
  float* device_gradients() const { return on_device(device_gradients_, gradients_); }
  float* device_statistics() const { return on_device(device_buffers_, buffers_); }

  // The declared parameters and buffers, in order of declaration.
  struct Entry {
    std::string name;
    Shape shape;  // canonical
    Initial initial;
    ParameterGroup group;
    WeightOrder order;
    std::int64_t offset;
    bool frozen;
    std::int64_t elements() const { return shape.elements(); }
  };
  const std::vector<Entry>& entries() const { return entries_; }
  const Entry& entry(ParameterId id) const { return entries_[at(id)]; }
  struct BufferEntry {
    std::string name;
    bool counter;
    std::int64_t elements;
    float initial;
    std::int64_t offset;
  };
  const std::vector<BufferEntry>& buffers() const { return buffer_entries_; }
  std::int64_t parameter_count() const;  // of elements, frozen ones too, without padding

  // Convert to and from canonical order; `flat` may be values(), gradients() or optimizer state of
  // the same layout.
  void get(std::span<const float> flat, ParameterId id, float* canonical) const;
  void set(std::span<float> flat, ParameterId id, const float* canonical) const;

 private:
  // The buffer or counter of that name, if it is declared.
  std::optional<BufferId> find_buffer(const std::string& name, bool counter,
                                      std::int64_t elements) const;
  static float* on_device(const Memory& device, const Buffer& host) {
    return device.bytes() > 0 ? device.as<float>() : host.as<float>();
  }

  std::vector<std::string> frozen_;  // beginnings of names
  std::vector<Entry> entries_;
  std::vector<BufferEntry> buffer_entries_;
  std::vector<std::int64_t> counters_;
  std::int64_t elements_ = 0;
  std::int64_t buffer_elements_ = 0;
  bool allocated_ = false;
  Buffer values_, gradients_, buffers_;
  Memory device_values_, device_gradients_, device_buffers_;
};

}  // namespace rk
