// `bench loader` on the emulated GPU: what arrives in the network's input, what its floors count,
// and the keys of its file.
#include "tools/bench/bench_loader.h"
#include "data/sources/open_dataset.h"
#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "tests/host_gpu/run_command.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/words.h"
#include "tools/bench/bench_loader_device.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace rk {
namespace {

constexpr const char* kSixGlyphs = "glyphs:classes=3,alphabets=1,images=2,size=24";
constexpr std::int64_t kImages = 6, kBatch = 4, kSide = 16;

TEST(BenchLoaderDevice, FloorsAreBytesOverRates) {
  const DeviceLoaderFloor half = device_loader_floor(Precision::kFp16, 10, 1e3, 1e4);
  EXPECT_EQ(half.upload_bytes, 300);
  EXPECT_EQ(half.input_bytes, 100 * (3 + 2 * 4));
  EXPECT_DOUBLE_EQ(half.upload_ms, 300);
  EXPECT_DOUBLE_EQ(half.input_ms, 110);
  EXPECT_EQ(half.longest(1), 300);
  EXPECT_EQ(device_loader_floor(Precision::kFp16, 10, 1e4, 1e3).longest(1), half.input_ms * 10);
  EXPECT_EQ(half.longest(301), 301);
  EXPECT_EQ(device_loader_floor(Precision::kBf16, 10, 1, 1).input_bytes, 100 * (3 + 2 * 8));
  EXPECT_EQ(device_loader_floor(Precision::kFp32, 10, 1, 1).input_bytes, 100 * (3 + 4 * 3));
}

// The second batch fills half of the places: the others keep what the first left there.
TEST(BenchLoaderDevice, TheInputHoldsTheLastPicturesAsNumbers) {
  const Context context(2, Device{.cuda = true});
  const Dataset data = open_dataset(kSixGlyphs, Split::kTrain);
  ASSERT_EQ(data.size(), kImages);
  const AugmentOptions crop = center_crop(kSide, kSide);
  const FloatTable table({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225});
  std::vector<std::vector<float>> numbers;
  std::vector<std::uint8_t> scratch;
  for (std::int64_t i = 0; i < kImages; ++i) {
    Image square(kSide, kSide);
    augment(data.load(i), crop, augment_random(0, 0, i, 0), square.data(), scratch);
    numbers.emplace_back(square.bytes());
    table.to_nhwc(square, numbers.back().data());
  }
  const auto sampler = make_sequential(data, kBatch);
  Loader loader(data, *sampler, crop, {});
  const std::vector<std::uint8_t> other(kBatch * kSide * kSide * 3, 77);
  const DeviceLoaderTimes times = time_device_loader(
      context, {Precision::kTf32, kImages, 0, kBatch, kSide}, table, loader, other);
  EXPECT_GT(times.loader, 0);
  EXPECT_GT(times.stage, 0);
  EXPECT_GT(times.upload, 0);
  EXPECT_GT(times.input, 0);
  const std::int64_t shown[kBatch] = {4, 5, 2, 3};
  ASSERT_EQ(times.last.size(), static_cast<std::size_t>(kBatch * kSide * kSide * 4));
  for (std::size_t k = 0; k < times.last.size(); ++k) {
    const std::size_t pixel = k / 4 % (kSide * kSide), channel = k % 4;
    const auto& image = numbers[at(shown[k / (kSide * kSide * 4)])];
    ASSERT_EQ(times.last[k], channel < 3 ? image[pixel * 3 + channel] : 0) << k;
  }
}

nlohmann::json run(const std::vector<std::string>& words, const std::string& device) {
  const TemporaryFolder folder;
  CommonOptions common;
  common.device = device;
  common.threads = 2;
  common.json = folder.in("loader.json");
  return run_command(*make_bench_loader(), common, words);
}

const std::vector<std::string> kFlags = {
    "--data", kSixGlyphs, "--image-size", "16", "--batch", "4", "--repeats", "3", "--workers", "2"};

TEST(BenchLoaderDevice, TheFileHasTheKeysOfTheCpuAndOfTheGpu) {
  const nlohmann::json host = run(kFlags, "cpu"),
                       gpu = run(joined(kFlags, {"--precision", "fp16"}), "cuda:0");
  for (const auto& [key, value] : host.items()) EXPECT_TRUE(gpu.contains(key)) << key;
  EXPECT_FALSE(host.contains("upload_ms"));
  EXPECT_EQ(gpu["device"], "cuda:0");
  EXPECT_EQ(gpu["device_name"], "the host as a GPU");
  EXPECT_EQ(gpu["precision"], "fp16");
  EXPECT_EQ(gpu["upload_bytes"], 16 * 16 * 3);
  EXPECT_EQ(gpu["input_bytes"], 16 * 16 * (3 + 2 * 4));
  for (const char* key :
       {"stage_ms", "upload_ms", "input_ms", "decode_ms", "images_per_second", "share"}) {
    EXPECT_GT(gpu[key].get<double>(), 0) << key;
    EXPECT_LE(gpu[std::string(key) + "_min"].get<double>(), gpu[key].get<double>()) << key;
  }
  const auto number = [&](const char* key) { return gpu[key].get<double>(); };
  EXPECT_DOUBLE_EQ(number("upload_floor_ms"),
                   number("upload_bytes") / number("upload_bytes_per_second") * 1e3);
  EXPECT_DOUBLE_EQ(number("input_floor_ms"),
                   number("input_bytes") / number("copy_bytes_per_second") * 1e3);
  EXPECT_GE(number("floor_ms"), number("decode_ms_min") / 2);  // by two workers
  // A share belongs to one repeat's floor and rate, which may differ from the medians, so only
  // these bounds hold.
  EXPECT_GE(number("share_max"), number("floor_ms_min") * number("images_per_second_min") / 1e3);
  EXPECT_LE(number("share_min"), number("floor_ms_max") * number("images_per_second_max") / 1e3);
}

// Images kept decoded cost no decoding; enough are timed that those ready beforehand count little.
TEST(BenchLoaderDevice, KeptImagesLeaveDecodingOutOfTheFloor) {
  const nlohmann::json kept = run(joined(kFlags, {"--cache", "1"}), "cuda:0"),
                       plain = run(kFlags, "cuda:0");
  EXPECT_EQ(kept["cached_images"], kImages);
  EXPECT_EQ(plain["cached_images"], 0);
  EXPECT_EQ(kept["timed_images"], 30 * kBatch);
  const auto number = [&](const char* key) { return kept[key].get<double>(); };
  EXPECT_LE(
      number("floor_ms_max"),
      std::max({number("resize_ms_max") / 2, number("upload_floor_ms"), number("input_floor_ms")}) *
          (1 + 1e-9));
}

TEST(BenchLoaderDevice, ThePrecisionIsTheGpus) {
  EXPECT_THROW(run(joined(kFlags, {"--precision", "fp16"}), "cpu"), UsageError);
}

}  // namespace
}  // namespace rk
