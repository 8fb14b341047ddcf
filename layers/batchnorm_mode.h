// Whose statistics a batch normalisation (layers/batchnorm.h) normalises by.
#pragma once

#include <cstdint>

namespace rk {

enum class BatchNormMode : std::uint8_t {
  kBatch,    // the batch's, which also move the running ones: training
  kRunning,  // the running ones, which stay: evaluation, and "frozen" training
};

}  // namespace rk
