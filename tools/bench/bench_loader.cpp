#include "tools/bench/bench_loader.h"

#include "data/loader/loader.h"
#include "data/sources/open_dataset.h"
#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/device/precision.h"
#include "engine/system/signals.h"
#include "tools/bench/bench_loader_device.h"
#include "tools/bench/gpu_rates.h"
#include "tools/bench/timing.h"
#include "tools/cli/json_file.h"
#include "tools/cli/messages.h"
#include "tools/cli/output_files.h"
#include "weights/model_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace rk {
namespace {

// Repeated passes over the first images of a data set.
class FirstImages : public Sampler {
 public:
  FirstImages(std::int64_t images, std::int64_t batch) : images_(images), batch_(batch) {}
  std::int64_t batch_size() const override { return batch_; }
  std::int64_t batches_per_epoch() const override { return images_; }  // whole rounds
  std::int64_t batch(std::int64_t, std::int64_t batch, std::span<Draw> draws) const override {
    for (std::int64_t i = 0; i < batch_; ++i) {
      const std::int64_t at = batch * batch_ + i;
      draws[static_cast<std::size_t>(i)] = {at % images_, at / images_};
    }
    return batch_;
  }

 private:
  std::int64_t images_, batch_;
};

// Times of the stages alone on one thread, milliseconds per image.
struct Stages {
  double decode = 0, resize = 0, to_float = 0;
  std::vector<std::uint8_t> crops;  // of the first batch
};

class BenchLoader final : public Command {
 public:
  void add_options(Flags& flags) override {
    flags.add("--data", data_, "which images: " + dataset_help()).required();
    flags.add("--split", split_, "which of its splits").check(shown_values(split_names()));
    flags.add("--image-size", size_, "side of the pictures").check(in_range(8, 4096));
    flags.add("--resize", resize_, "short side before cropping (0: 8/7 of the side)")
        .check(in_range(0, kMostSide));
    flags.add("--augment", augment_, "none, or crop=...,flip=... as for train");
    flags.add("--workers", workers_, "loading threads; 0: as many as train takes")
        .check(in_range(0, 1024));
    flags.add("--batch", batch_, "images a batch").check(in_range(1, 1 << 16));
    flags.add("--images", images_, "images to take, at most; few are gone through repeatedly")
        .check(in_range(1, 1 << 24));
    flags
        .add("--cache", cache_,
             "MiB of decoded images to keep; a pass over the images fills them before the "
             "time is taken")
        .check(in_range(0, 1 << 20));
    flags.add("--repeats", repeats_, "timed runs").check(in_range(1, 10000));
    flags.add("--precision", precision_, "on a GPU: fp32, tf32, fp16 or bf16")
        .check(one_of(precision_names()));
  }
  bool runs_on_cuda() const override { return true; }
  const char* less_memory() const override { return "--batch, --cache"; }

  void run(const CommonOptions& common) override {
    workers_ = loading_threads(workers_);
    const Context context(common.threads, device_of(common));
    if (!context.on_gpu() && precision_ != "fp32") {
      fail<UsageError>("--precision is for a GPU; add --device cuda");
    }
    if (context.on_gpu()) {
      const CudaContext& gpu = context.cuda();
      device_floor_ = device_loader_floor(precision_of(precision_), size_, gpu_upload_rate(gpu),
                                          gpu_copy_rate(gpu));
    }
    const DataSpec spec = read_data_spec(data_);
    check_outputs({{"--json", common.json, FileKind::kJson}}, {spec.path}, common.force);
    const Dataset data = open_dataset(spec, parse_split(split_));
    const int resize = resize_ > 0 ? resize_ : (size_ * 8 + 3) / 7;
    const AugmentOptions augmentation = parse_augment(augment_, center_crop(size_, resize));
    const std::int64_t images = std::min<std::int64_t>(images_, data.size());
    std::vector<double> decode, reduce, to_float, rate, share, stage, upload, input, floor;
    for (int repeat = 0; repeat < repeats_; ++repeat) {
      // Stages and loader alternate, so that a busy machine slows both alike.
      const Stages stages = measure_stages(data, augmentation, images, common.seed);
      decode.push_back(stages.decode);
      reduce.push_back(stages.resize);
      to_float.push_back(stages.to_float);
      const DeviceLoaderTimes times =
          measure_loader(context, data, augmentation, images, common.seed, stages.crops);
      stage.push_back(times.stage);
      upload.push_back(times.upload);
      input.push_back(times.input);
      rate.push_back(1e3 / times.loader);
      const double decoded = 1 - static_cast<double>(cached_images_) / static_cast<double>(images);
      floor.push_back(device_floor_.longest((decoded * stages.decode + stages.resize) / workers_));
      share.push_back(floor.back() / times.loader);
    }
    nlohmann::json json = {{"data", data_},       {"split", split_},
                           {"image_size", size_}, {"augment", augment_text(augmentation)},
                           {"workers", workers_}, {"batch", batch_},
                           {"images", images},    {"timed_images", timed(images)},
                           {"cache_mib", cache_}, {"cached_images", cached_images_},
                           {"repeats", repeats_}};
    put(json, "images_per_second", summarize(rate));
    put(json, "decode_ms", summarize(decode));
    put(json, "resize_ms", summarize(reduce));
    put(json, "float_ms", summarize(to_float));
    put(json, "share", summarize(share));
    if (context.on_gpu()) {
      put(json, "stage_ms", summarize(stage));
      put(json, "upload_ms", summarize(upload));
      put(json, "input_ms", summarize(input));
      put(json, "floor_ms", summarize(floor));
      json.update(device_keys(context.cuda()));
      print(
          "{}, {}: staging {:.4f} ms  upload {:.4f} ms (floor {:.4f})  input kernel {:.4f} ms "
          "(floor {:.4f})\n",
          context.gpu_name(), precision_, summarize(stage).median, summarize(upload).median,
          device_floor_.upload_ms, summarize(input).median, device_floor_.input_ms);
    }
    print(
        "{}  {} to {} x {}, {}\n"
        "{:.0f} images/s ({:.0f} to {:.0f})  alone, an image: decode {:.3f} ms  resize {:.3f} ms  "
        "float {:.3f} ms  share {:.0f} %\n",
        one_line(data_), counted(images, "image"), size_, size_, counted(workers_, "worker"),
        summarize(rate).median, summarize(rate).least, summarize(rate).most,
        summarize(decode).median, summarize(reduce).median, summarize(to_float).median,
        100 * summarize(share).median);
    write_result(common, workers_, std::move(json));
  }

 private:
  std::int64_t batch_of(std::int64_t images) const {
    return std::min<std::int64_t>(batch_, images);
  }
  // Enough images that the prefetched batches at either end of the timed part count for little.
  std::int64_t timed(std::int64_t images) const {
    return std::max(images, std::int64_t{10} * prefetch_ * batch_of(images));
  }

  Stages measure_stages(const Dataset& data, const AugmentOptions& augmentation,
                        std::int64_t images, std::uint64_t seed) const {
    Stages stages;
    Image square(size_, size_);
    std::vector<std::uint8_t> scratch;
    std::vector<float> floats(square.bytes());
    const auto share = 1.0 / static_cast<double>(images);
    for (std::int64_t i = 0; i < images; ++i) {
      stop_if_interrupted();
      Image picture;
      stages.decode += share * milliseconds([&] { picture = data.load(i); });
      stages.resize +=
          share * milliseconds([&] {
            augment(picture, augmentation, augment_random(seed, 0, i, 0), square.data(), scratch);
          });
      stages.to_float += share * milliseconds([&] { table_.to_nhwc(square, floats.data()); });
      if (i < batch_) {
        stages.crops.insert(stages.crops.end(), square.data(), square.data() + square.bytes());
      }
    }
    return stages;
  }

  // crops: those of one batch of images.
  DeviceLoaderTimes measure_loader(const Context& context, const Dataset& data,
                                   const AugmentOptions& augmentation, std::int64_t images,
                                   std::uint64_t seed, std::span<const std::uint8_t> crops) {
    LoaderOptions options;
    options.workers = workers_;
    options.cache_bytes = std::int64_t{cache_} << 20;
    options.bad = BadPolicy::kFail;
    options.seed = seed;
    const std::int64_t batch = batch_of(images);
    const FirstImages sampler(images, batch);
    Loader loader(data, sampler, augmentation, options);
    for (std::int64_t done = 0; cache_ > 0 && done < images;) {
      stop_if_interrupted();
      done += loader.next()->count;
    }
    cached_images_ = loader.cached_images();
    if (context.on_gpu()) {
      return time_device_loader(context,
                                {precision_of(precision_), timed(images), prefetch_, batch, size_},
                                table_, loader, crops);
    }
    for (int ready = 0; ready < prefetch_; ++ready) loader.next();
    std::int64_t done = 0;
    DeviceLoaderTimes times;
    times.loader = milliseconds([&] {
      while (done < timed(images)) {
        stop_if_interrupted();
        done += loader.next()->count;
      }
    });
    times.loader /= static_cast<double>(done);
    return times;
  }

  nlohmann::json device_keys(const CudaContext& gpu) const {
    return {{"precision", precision_},
            {"device_name", gpu.name()},
            {"upload_bytes", device_floor_.upload_bytes},
            {"input_bytes", device_floor_.input_bytes},
            {"upload_bytes_per_second", device_floor_.upload_rate},
            {"copy_bytes_per_second", device_floor_.copy_rate},
            {"upload_floor_ms", device_floor_.upload_ms},
            {"input_floor_ms", device_floor_.input_ms}};
  }

  std::string data_;
  std::string split_ = "train";
  std::string augment_ = "none";
  int size_ = 224;
  int resize_ = 0;
  int workers_ = 0;
  int batch_ = 32;
  int images_ = 256;
  int cache_ = 0;
  int repeats_ = 5;
  std::string precision_ = "fp32";
  std::int64_t cached_images_ = 0;
  const int prefetch_ = LoaderOptions{}.prefetch;
  FloatTable table_{ModelDescription{}.input_mean, ModelDescription{}.input_std};
  DeviceLoaderFloor device_floor_;  // zeros on the CPU
};

}  // namespace

std::unique_ptr<Command> make_bench_loader() { return std::make_unique<BenchLoader>(); }

}  // namespace rk
