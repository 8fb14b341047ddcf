// One of the product's networks, driven the way the golden files describe it: tensors by
// torchvision's names, in PyTorch's order of elements (OIHW, NCHW), as doubles.
#pragma once

#include "layers/networks/network.h"
#include "weights/checkpoint.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rk::golden {

class NetworkModel {
 public:
  struct Settings {
    NetworkSpec spec;
    std::int64_t batch = 0, height = 0, width = 0;
    bool gradients = false;
    bool input_gradient = false;
  };

  NetworkModel(const Context& context, const Settings& settings);

  // Every parameter, running statistic and counter.
  void load(const Checkpoint& weights);
  void set_images(const std::vector<float>& nchw);
  void forward();
  void backward(const std::vector<float>& output_gradient);  // dL/dE

  Parameters& parameters() { return parameters_; }
  // These three return an empty vector if the network has none of that name.
  std::vector<double> parameter(const std::string& name) const;
  std::vector<double> parameter_gradient(const std::string& name) const;
  std::vector<double> running(const std::string& name);
  std::vector<double> features() const { return value(network_.features); }
  std::vector<double> embeddings() const { return value(network_.embeddings); }
  std::vector<double> input_gradient() const { return gradient(network_.input); }
  // Return nullopt if fusion leaves no such tensor in memory.
  std::optional<std::vector<double>> activation(const std::string& name) const;
  std::optional<std::vector<double>> activation_gradient(const std::string& name) const;

 private:
  std::vector<double> value(TensorId id) const { return read(id, program_.value(id)); }
  std::vector<double> gradient(TensorId id) const { return read(id, program_.gradient(id)); }
  // Copy a tensor's float32 values, in its own order, to and from the program's memory.
  void put(const std::vector<float>& values, float* to) const;
  std::vector<float> fetch(const float* from, std::int64_t count) const;
  std::vector<double> read(TensorId id, const float* stored) const;
  bool is_masked(TensorId id) const;
  std::vector<double> read_flat(std::span<const float> flat, const std::string& name) const;

  const Context& context_;
  Parameters parameters_;
  Program program_;
  Network network_;
  bool fused_;
};

}  // namespace rk::golden
