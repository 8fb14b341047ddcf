// libFuzzer target: any text is a UsageError or InputError, or names a sampler whose batches hold
// only images of the data set.
#include "data/samplers/sampler.h"
#include "data/sources/open_dataset.h"
#include "engine/base/error.h"
#include "engine/base/integers.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const rk::Dataset glyphs = rk::open_dataset(
      "glyphs:classes=8,test_classes=8,alphabets=2,test_alphabets=2,images=8,size=32",
      rk::Split::kTrain);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto sampler = rk::make_sampler(text, glyphs, 16, 1);
    std::vector<rk::Draw> draws(static_cast<std::size_t>(sampler->batch_size()));
    const std::int64_t last = sampler->batches_per_epoch() - 1;
    const std::int64_t count = sampler->batch(3, last, draws);
    if (count < 1 || count > sampler->batch_size()) std::abort();
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t index = draws[rk::at(i)].index;
      if (index < 0 || index >= glyphs.size()) std::abort();
    }
  } catch (const rk::UsageError&) {
  } catch (const rk::InputError&) {
  }
  return 0;
}
