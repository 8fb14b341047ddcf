// The statistics of a batch normalisation on a GPU by our own kernels, and their values kept for
// backward.
#pragma once

#include "engine/device/carver.h"
#include "engine/tape/parameters.h"
#include "kernels/blocks/batchnorm_gradient_block.h"
#include "kernels/launch.h"
#include "layers/gpu/batchnorm.h"

#include <cstdint>

namespace rk::gpu {

template <class T> class BatchStatistics {
 public:
  // convolution: the one that writes x, if it also sums x per channel; else null.
  BatchStatistics(Parameters& parameters, const BatchNormTensors& tensors, std::int64_t rows,
                  std::int64_t channels, const SummingConvolution* convolution)
      : parameters_(parameters),
        tensors_(tensors),
        rows_(rows),
        channels_(static_cast<int>(channels)),
        convolution_(convolution) {}

  void carve(Carver& saved, Carver& workspace) {
    mean_ = saved.take<float>(channels_);
    inv_std_ = saved.take<float>(channels_);
    scale_ = saved.take<float>(channels_);
    partial_ = workspace.take<double>(ChannelTiles{rows_, channels_}.partials(2));
    factors_ = workspace.take<float>(3 * static_cast<std::int64_t>(channels_));
  }

  // Computes the statistics of x [rows, channels] and updates the running ones.
  void of_batch(const T* x, const BatchNormOptions& options, CudaStream stream) {
    const BatchNormStatisticsOut out{
        .gamma = parameters_.device_value(tensors_.gamma),
        .epsilon = options.epsilon,
        .momentum = options.momentum,
        .running_mean = parameters_.device_buffer(tensors_.mean),
        .running_variance = parameters_.device_buffer(tensors_.variance),
        .mean = mean_,
        .inv_std = inv_std_,
        .scale = scale_};
    if (convolution_ != nullptr) {
      const SummingConvolution::Sums sums = convolution_->sums();
      launch(BatchNormStatisticsOfSums{.rows = rows_,
                                       .channels = channels_,
                                       .sum = sums.sum,
                                       .squares = sums.squares,
                                       .out = out},
             stream);
      return;
    }
    launch(BatchNormSums<T>{.rows = rows_, .channels = channels_, .x = x, .partial = partial_},
           stream);
    launch(
        BatchNormStatistics{.rows = rows_, .channels = channels_, .partial = partial_, .out = out},
        stream);
  }
  void running(const BatchNormOptions& options, CudaStream stream) {
    launch(BatchNormRunning{.channels = channels_,
                            .gamma = parameters_.device_value(tensors_.gamma),
                            .epsilon = options.epsilon,
                            .running_mean = parameters_.device_buffer(tensors_.mean),
                            .running_variance = parameters_.device_buffer(tensors_.variance),
                            .mean = mean_,
                            .inv_std = inv_std_,
                            .scale = scale_},
           stream);
  }
  // Call after the gradient's sums are in partial(): computes the gradients of gamma and beta, and
  // factors().
  void finish_gradient_sums(bool batch, CudaStream stream) {
    launch(BatchNormGradientFactors{.rows = rows_,
                                    .channels = channels_,
                                    .batch_statistics = batch,
                                    .partial = partial_,
                                    .inv_std = inv_std_,
                                    .scale = scale_,
                                    .d_gamma = parameters_.device_gradient(tensors_.gamma),
                                    .d_beta = parameters_.device_gradient(tensors_.beta),
                                    .factors = factors_},
           stream);
  }

  const float* mean() const { return mean_; }
  const float* scale() const { return scale_; }
  const float* beta() const { return parameters_.device_value(tensors_.beta); }
  double* partial() const { return partial_; }
  const float* factors() const { return factors_; }
  bool from_convolution() const { return convolution_ != nullptr; }

 private:
  Parameters& parameters_;
  BatchNormTensors tensors_;
  std::int64_t rows_;
  int channels_;
  const SummingConvolution* convolution_;
  float* mean_ = nullptr;
  float* inv_std_ = nullptr;
  float* scale_ = nullptr;
  double* partial_ = nullptr;  // in the workspace
  float* factors_ = nullptr;
};

// The convolution that produces x, if it also sums x per channel; else null.
inline const SummingConvolution* summing_producer(const Program& program, TensorId x) {
  const auto* convolution = dynamic_cast<const SummingConvolution*>(program.producer(x));
  return convolution != nullptr && convolution->adds_up() ? convolution : nullptr;
}

}  // namespace rk::gpu
