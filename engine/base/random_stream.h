// Assigns each use of random numbers its own stream, since uses that shared one would see the same
// draws. Usage: CounterRandom(seed, random_stream(use, epoch), index), or random_stream(use) of a
// use that no epoch changes.
#pragma once

#include "engine/base/error.h"

#include <cstdint>

namespace rk {

enum class RandomUse : std::uint32_t {
  kClassOrder = 0x10,     // index: pass, or batch and part
  kImageOrder = 0x11,     // index: class and cycle, pass, or class and batch
  kAugment = 0x12,        // index: data set index and copy
  kHoldOut = 0x13,        // index 0
  kGlyphStyle = 0x14,     // index: alphabet
  kGlyphShape = 0x15,     // index: character
  kGlyphDrawing = 0x16,   // index: character and drawing
  kCategoryPairs = 0x17,  // index: pass
};

// Larger than every stream of an epoch.
enum class RandomUseOnce : std::uint32_t {
  kTrainingSample = 0x5A3B1E00,  // index 0
  kReportQueries = 0x5E1EC700,   // index: number of queries
  kBootstrap = 0x626F6F74,       // index: resample
  kParameter = 0x696E6974,       // index: hash of the name, plus the block of elements
  kClusterCentres = 0x6B6D6E73,  // index 0
};

// Image (or class) indices and copies (appearances in an epoch) below these limits key distinct
// draws.
inline constexpr std::int64_t kMostIndices = std::int64_t{1} << 36;
inline constexpr std::int64_t kMostCopies = std::int64_t{1} << 28;

inline constexpr int kMostEpochs = 1 << 24;

inline std::uint32_t random_stream(RandomUse use, std::int64_t epoch = 0) {
  expect(epoch >= 0 && epoch < kMostEpochs, "[random] expected an epoch below {}, got {}",
         kMostEpochs, epoch);
  return (static_cast<std::uint32_t>(use) << 24) | static_cast<std::uint32_t>(epoch);
}
inline std::uint32_t random_stream(RandomUseOnce use) { return static_cast<std::uint32_t>(use); }

}  // namespace rk
