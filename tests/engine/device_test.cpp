// Every way a machine can have a GPU or not, from made-up reports.
#include "engine/driver/device.h"

#include "engine/base/error.h"

#include <gtest/gtest.h>

namespace rk {
namespace {

GpuReport::Error works(int) { return {}; }

// A machine on which everything is as it should be.
GpuReport good_machine() {
  GpuReport report;
  report.built = true;
  report.runtime = 13000;
  report.driver = 13010;
  report.architectures = "8.x, 9.x and newer";
  report.cards = {{"NVIDIA H200", 90, std::int64_t{139} << 30},
                  {"NVIDIA A100", 80, std::int64_t{79} << 30}};
  report.libraries = {{"cuBLAS", 130000, 130100, "", ""}, {"cuDNN", 90800, 91900, "", ""}};
  report.start = works;
  return report;
}

// `cuda` (or cuda:<index>) must fail with exactly this, and `auto` take the CPU for that reason.
void expect_problem(const GpuReport& report, const std::string& problem,
                    const std::string& way_out = "; or use --device cpu",
                    const std::string& of_auto = "") {
  SCOPED_TRACE(problem);
  const DeviceChoice choice = choose_device(parse_device("auto"), report);
  EXPECT_EQ(choice.device.name(), "cpu");
  EXPECT_EQ(choice.why, of_auto.empty() ? problem : of_auto);
  for (const char* asked : {"cuda", "cuda:0"}) {
    try {
      choose_device(parse_device(asked), report);
      ADD_FAILURE() << asked << " was taken";
    } catch (const DeviceError& error) {
      EXPECT_EQ(error.what(), fmt::format("--device {}: {}{}", asked, problem, way_out));
      EXPECT_EQ(error.exit_code(), ExitCode::kDevice);
    }
  }
  // Whatever is wrong with the GPU, the CPU is there.
  EXPECT_EQ(choose_device(parse_device("cpu"), report).device.name(), "cpu");
}

TEST(Device, FlagIsAutoCpuCudaOrAnIndex) {
  EXPECT_EQ(parse_device("cuda:17").index, 17);
  EXPECT_FALSE(parse_device("cuda").index.has_value());
  for (const Device& device : {Device{}, Device{.cuda = true}, Device{.cuda = true, .index = 3}}) {
    const Device parsed = parse_device(device.name()).device();
    EXPECT_EQ(parsed.cuda, device.cuda);
    EXPECT_EQ(parsed.index, device.index);
  }
  EXPECT_EQ(parse_device("cuda").device().name(), "cuda:0");
  EXPECT_EQ(parse_device("auto").device().name(), "cpu");
  for (const char* text : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda:1234", "CPU",
                           "cuda0", "cpu:0", "cuda: 1"}) {
    EXPECT_THROW(parse_device(text), UsageError) << text;
  }
}

TEST(Device, AGoodMachineGivesItsFirstGpu) {
  for (const char* asked : {"auto", "cuda", "cuda:0"}) {
    const DeviceChoice choice = choose_device(parse_device(asked), good_machine());
    EXPECT_EQ(choice.device.name(), "cuda:0") << asked;
    EXPECT_EQ(choice.why, "NVIDIA H200, 139 GiB");
  }
  EXPECT_EQ(choose_device(parse_device("cuda:1"), good_machine()).device.name(), "cuda:1");
}

TEST(Device, NoCudaInTheBuild) {
  GpuReport report = good_machine();
  report.built = false;
  expect_problem(report, "this build has no CUDA", "; use --device cpu");
}

TEST(Device, NoDriver) {
  GpuReport report = good_machine();
  report.driver = 0;
  report.error = {kCudaInsufficientDriver, "CUDA driver version is insufficient"};
  expect_problem(
      report, "no NVIDIA driver was found (libcuda.so.1); install one, or use a machine with a GPU",
      "; or use --device cpu", "no GPU: this machine has no NVIDIA driver");
}

TEST(Device, DriverTooOld) {
  GpuReport report = good_machine();
  report.cards.clear();
  report.driver = 11040;
  report.error = {kCudaInsufficientDriver, "CUDA driver version is insufficient"};
  expect_problem(
      report,
      "the NVIDIA driver is too old: it runs CUDA 11.4, this program needs 13.0; install "
      "a newer one");
}

TEST(Device, NoGpu) {
  GpuReport report = good_machine();
  report.cards.clear();
  report.error = {kCudaNoDevice, "no CUDA-capable device is detected"};
  expect_problem(report, "the NVIDIA driver finds no GPU; see that nvidia-smi lists one");
  report.error = {};
  expect_problem(report, "the NVIDIA driver finds no GPU; see that nvidia-smi lists one");
}

TEST(Device, HiddenByTheEnvironment) {
  GpuReport report = good_machine();
  report.cards.clear();
  report.error = {kCudaNoDevice, "no CUDA-capable device is detected"};
  report.visible = "";
  expect_problem(report,
                 "CUDA_VISIBLE_DEVICES is empty, which hides every GPU; unset it or name one");
  report.visible = "7";
  expect_problem(report, "CUDA_VISIBLE_DEVICES=7 leaves no GPU; name one that nvidia-smi lists");
}

TEST(Device, WhateverElseStopsCuda) {
  GpuReport report = good_machine();
  report.cards.clear();
  report.error = {802, "system not yet initialized"};
  expect_problem(report,
                 "CUDA does not start: system not yet initialized (error 802); see nvidia-smi");
}

TEST(Device, NoCodeForTheCard) {
  GpuReport report = good_machine();
  report.cards = {{"GTX 1080", 61, std::int64_t{8} << 30}};
  for (const int code : {kCudaNoKernelImage, kCudaInvalidFunction}) {
    report.start = [=](int) { return GpuReport::Error{code, "no kernel image is available"}; };
    expect_problem(report,
                   "GTX 1080 has compute capability 6.1, this program has code for 8.x, 9.x and "
                   "newer; take a newer one");
  }
}

TEST(Device, LibraryMissing) {
  GpuReport report = good_machine();
  report.libraries = {{"cuDNN", 90800, 0, "", "libcudnn.so.9 was looked for in /a, /b"}};
  expect_problem(report,
                 "cuDNN cannot be loaded: libcudnn.so.9 was looked for in /a, /b; this program "
                 "needs cuDNN 9.8.0 or newer of major version 9: install that, or name its folder "
                 "in RK_CUDA_LIBRARIES");
}

TEST(Device, LibraryOfAnotherVersion) {
  GpuReport report = good_machine();
  const auto problem = [](const std::string& loaded) {
    return fmt::format(
        "cuDNN {} was loaded (/a/libcudnn.so.9), this program needs cuDNN 9.8.0 or newer of major "
        "version 9; install that, or name its folder in RK_CUDA_LIBRARIES",
        loaded);
  };
  for (const auto& [version, name] :
       {std::pair(90701, "9.7.1"), std::pair(81002, "8.10.2"), std::pair(100000, "10.0.0")}) {
    report.libraries = {{"cuDNN", 90800, version, "/a/libcudnn.so.9", ""}};
    expect_problem(report, problem(name));
  }
  // Every version from the oldest one supported on.
  for (const int version : {90800, 90900, 92000}) {
    report.libraries = {{"cuBLAS", 130000, 130000, "", ""}, {"cuDNN", 90800, version, "", ""}};
    EXPECT_EQ(choose_device(parse_device("auto"), report).device.name(), "cuda:0") << version;
  }
}

TEST(Device, IndexBeyondTheLast) {
  GpuReport report = good_machine();
  const auto said = [&] {
    try {
      choose_device(parse_device("cuda:2"), report);
    } catch (const DeviceError& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  EXPECT_EQ(said(), "--device cuda:2: the last GPU of this machine is cuda:1; or use --device cpu");
  report.cards.resize(1);
  EXPECT_EQ(said(), "--device cuda:2: this machine has one GPU, cuda:0; or use --device cpu");
}

// A GPU that another process uses exclusively, or whose memory is broken, is skipped; those after
// the one taken are not touched.
TEST(Device, AutoTakesTheFirstThatWorks) {
  GpuReport report = good_machine();
  report.cards.push_back({"NVIDIA A100", 80, 1});
  std::vector<int> started;
  report.start = [&](int card) {
    started.push_back(card);
    return card == 0 ? GpuReport::Error{214, "uncorrectable ECC error encountered"}
                     : GpuReport::Error{};
  };
  EXPECT_EQ(choose_device(parse_device("auto"), report).device.name(), "cuda:1");
  EXPECT_EQ(started, (std::vector<int>{0, 1}));
  EXPECT_THROW(choose_device(parse_device("cuda:0"), report), DeviceError);
  report.start = [](int) {
    return GpuReport::Error{46, "all CUDA-capable devices are busy or unavailable"};
  };
  const DeviceChoice choice = choose_device(parse_device("auto"), report);
  EXPECT_EQ(choice.device.name(), "cpu");
  EXPECT_TRUE(choice.why.starts_with("NVIDIA H200: all CUDA-capable devices are busy"))
      << choice.why;
}

TEST(Device, AFailureSaysWhatToDo) {
  EXPECT_EQ(cuda_failure("the GPU's work", "an illegal memory access was encountered", 700),
            "[the GPU's work] an illegal memory access was encountered (error 700); start again; "
            "if it comes again, compute-sanitizer finds the place");
  EXPECT_EQ(cuda_failure("product", "out of memory", 2),
            "[product] out of memory (error 2); make the batch smaller or end what else runs on "
            "the GPU (nvidia-smi)");
  EXPECT_EQ(cuda_failure("stream", "uncorrectable ECC error encountered", 214),
            "[stream] uncorrectable ECC error encountered (error 214); the GPU's memory is "
            "damaged; take another GPU, or reset this one (nvidia-smi -q -d ECC)");
  EXPECT_EQ(cuda_failure("row kernel", "too many resources requested for launch", 701),
            "[row kernel] too many resources requested for launch (error 701); see nvidia-smi");
  EXPECT_EQ(cuda_failure("device", "unknown error", 999),
            "[device] unknown error (error 999); see nvidia-smi");
}

// CUDA's reference says of each whether the process can go on to use CUDA.
TEST(Device, SomeErrorsEndAllWork) {
  for (const int code : {214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721}) {
    EXPECT_TRUE(ends_all_work(code)) << code;
  }
  // None; a wrong argument; want of memory; no kernel image; too many resources; peers' errors;
  // memory that is registered already; a cooperative launch that is too large; captures.
  for (const int code : {0, 1, 2, 209, 701, 704, 705, 711, 712, 713, 720, 900, 901, 908}) {
    EXPECT_FALSE(ends_all_work(code)) << code;
  }
}

// On whatever machine this runs: an answer, not a crash, and the same twice.
TEST(Device, ThisMachineAnswers) {
  const DeviceRequest request = parse_device("auto");
  const DeviceChoice choice = choose_device(request, probe_gpus());
  EXPECT_FALSE(choice.why.empty());
  EXPECT_EQ(choose_device(request, probe_gpus()).why, choice.why);
  EXPECT_EQ(probe_gpus().built, has_gpu_code());
}

}  // namespace
}  // namespace rk
