// The real programs must refuse damaged and malicious files in one line with exit code 3, within
// limits of time and memory.
#include "engine/base/error.h"
#include "engine/base/sanitizers.h"
#include "engine/system/read_file.h"
#include "retrieval/files/embeddings_file.h"
#include "tests/support/child_process.h"
#include "tests/support/messages.h"
#include "tests/support/random_seed.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/weights/raw_hdf5.h"
#include "tests/tools/train/tiny_run.h"
#include "weights/atomic_file.h"
#include "weights/checkpoint.h"
#include "weights/run_folder.h"

#include <gtest/gtest.h>
#include <hdf5.h>

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

namespace rk {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Random = std::mt19937_64;

const std::string kFixtures = RK_TEST_GOLDEN "/fixtures/hdf5/";
constexpr std::uint64_t kAllowed = 1'000'000'000;  // max(2 x the file, 1 GB): the files are small

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The largest peak memory of any process that this one has waited for, and of their children.
std::uint64_t peak_bytes_of_children() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

void expect_one_line(const Finished& run, const std::string& words) {
  EXPECT_EQ(run.code, 3) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_TRUE(run.err.starts_with("error: ")) << run.err;
  EXPECT_EQ(run.err.find('\n'), run.err.size() - 1) << run.err;
  EXPECT_TRUE(holds(run.err, words));
}

Finished eval(const std::string& file, const TemporaryFolder& folder) {
  return run_to_end(
      {RK_BIN "/eval", "--embeddings", file, "--device", "cpu", "--threads", "1", "-q"},
      folder.path().string());
}

TEST(HostileFiles, FilesThatCrashHangAndBloatTheLibraryAreOneLineEach) {
  struct Case {
    const char* file;
    const char* words;
    double seconds;  // the limit: ten times what an idle machine takes
  };
  // HDF5 1.14 finds the damage itself. In a sanitizer's build the signal differs: the sanitizer
  // cannot report, as the child must not write.
  const char* crash = H5_VERSION_GE(1, 14, 0) ? "crash.h5: /paths cannot be read"
                      : RK_SANITIZED          ? "crash.h5: crashes the HDF5 library (signal "
                                              : "crash.h5: crashes the HDF5 library (signal 11";
  for (const auto& [file, words, seconds] :
       {Case{"crash.h5", crash, 10},
        Case{"hang.h5", "hang.h5: keeps the HDF5 library busy for more than 2 s", 60},
        Case{"memory.h5", "memory.h5: a chunk of /embeddings inflates beyond its size", 10},
        Case{"widen.h5", "MiB are the limit for a file of 432523 bytes", 30}}) {
    const TemporaryFolder folder;
    ASSERT_TRUE(fs::exists(kFixtures + file));
    const auto start = Clock::now();
    const Finished run = eval(kFixtures + file, folder);
    EXPECT_LT(seconds_since(start), seconds) << file;
    EXPECT_LT(peak_bytes_of_children(), kAllowed) << file;
    expect_one_line(run, words);
  }
  const TemporaryFolder folder;
  EXPECT_EQ(eval(kFixtures + "ok.h5", folder).code, 0);
}

// Makes a file of 4 MiB: int8 values that take a gigabyte as float32.
void write_widening(const std::string& path) {
  constexpr hsize_t kChunks = 64;
  const std::array<hsize_t, 2> chunk = {1024, 4096}, dims = {kChunks * chunk[0], chunk[1]};
  std::vector<std::int8_t> values(chunk[0] * chunk[1]);
  Random random(random_seed());
  for (std::size_t i = 0; i < std::size_t{64} << 10; ++i) {
    values[i] = static_cast<std::int8_t>(random());
  }
  made_hdf5(path, [&](hid_t file) {
    const hid_t space = H5Screate_simple(2, dims.data(), nullptr);
    const hid_t part = H5Screate_simple(2, chunk.data(), nullptr);
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, 2, chunk.data());
    H5Pset_deflate(creation, 1);
    const hid_t set =
        H5Dcreate2(file, "embeddings", H5T_STD_I8LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    for (hsize_t i = 0; i < kChunks; ++i) {
      const std::array<hsize_t, 2> begin = {i * chunk[0], 0};
      H5Sselect_hyperslab(space, H5S_SELECT_SET, begin.data(), nullptr, chunk.data(), nullptr);
      EXPECT_GE(H5Dwrite(set, H5T_NATIVE_INT8, part, space, H5P_DEFAULT, values.data()), 0);
    }
    H5Dclose(set);
    H5Pclose(creation);
    H5Sclose(part);
    H5Sclose(space);
  });
}

// A loss's input that is too large must be refused before memory for it is allocated.
TEST(HostileFiles, TheInputOfALossTakesNoMoreMemoryThanItMay) {
  const TemporaryFolder folder;
  const std::string path = folder.in("wide.h5");
  write_widening(path);
  const auto probe = [&](const std::string& file) {
    return run_to_end({RK_BIN "/probe", "--loss", "fastap", "--in", file, "--device", "cpu", "-q"},
                      folder.path().string());
  };
  const Finished wide = probe(path);
  EXPECT_LT(peak_bytes_of_children(), kAllowed);
  expect_one_line(wide, "/embeddings takes 1024 MiB as it is read");
  // A loss compares all rows with each other, which takes a square matrix.
  const Finished many = probe(kFixtures + "widen.h5");
  EXPECT_LT(peak_bytes_of_children(), kAllowed);
  expect_one_line(many, "rows, and a loss compares at most 65536 with one another");
}

// A signal must stop a program at once, even while it waits for the HDF5 library.
TEST(HostileFiles, WaitingForTheLibraryEndsOnASignal) {
  const TemporaryFolder folder;
  for (const int signal : {SIGINT, SIGTERM}) {
    ChildProcess program({RK_BIN "/eval", "--embeddings", kFixtures + "hang.h5", "-v"},
                         folder.path().string());
    // The program prints its device just before it reads; then the library is busy for 2 s.
    program.wait_for([&] { return holds(program.said_so_far(), "device: "); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    program.send(signal);
    const Finished run = program.wait();
    EXPECT_EQ(run.code, 128 + signal) << run.err;
    EXPECT_TRUE(holds(run.err, "nothing was written"));
  }
}

// Changes bits, bytes, words or whole stretches, as a disk, a network or an attacker might.
void mutate(std::vector<std::byte>& bytes, Random& random) {
  const auto at = [&](std::size_t room) { return random() % (bytes.size() - room); };
  for (std::uint64_t i = 0, count = 1 + random() % 4; i < count; ++i) {
    switch (random() % 5) {
      case 0: bytes[at(0)] ^= static_cast<std::byte>(1U << (random() % 8)); break;
      case 1: bytes[at(0)] = static_cast<std::byte>(random()); break;
      case 2: {
        constexpr std::array<std::uint64_t, 5> kLimits = {0, ~std::uint64_t{0}, 1ULL << 31,
                                                          1ULL << 63, 0xffff};
        const std::uint64_t word = kLimits[random() % kLimits.size()];
        std::memcpy(bytes.data() + at(8), &word, std::size_t{1} << (random() % 4));
        break;
      }
      case 3: {
        const std::size_t length = 1 + random() % 64, from = at(length), to = at(length);
        std::memmove(bytes.data() + to, bytes.data() + from, length);
        break;
      }
      default: {
        // HDF5's structures lie at the beginning of the file.
        const std::size_t place = random() % std::min<std::size_t>(bytes.size(), 2048);
        bytes[place] = static_cast<std::byte>(random());
      }
    }
  }
}

// Some damaged files hang the library, which may then be busy for 2 s: a test ends when it has met
// this many.
constexpr int kHangs = 2;

int hangs(std::string_view message) {
  return message.find("keeps the HDF5 library busy") != std::string_view::npos ? 1 : 0;
}

TEST(HostileFiles, DamagedEmbeddingsAreReadOrRefused) {
  Random random(random_seed());
  const TemporaryFolder folder;
  const std::string path = folder.in("damaged.h5");
  const std::vector<std::byte> whole = read_file(kFixtures + "ok.h5", std::size_t{1} << 20);
  for (int i = 0, hung = 0; i < 100 && hung < kHangs && !HasFailure(); ++i) {
    std::vector<std::byte> damaged = whole;
    mutate(damaged, random);
    write_atomic(path, damaged);
    const auto start = Clock::now();
    const Finished run = eval(path, folder);
    // The library may take 2 s; the rest is for a machine that is busy with other tests.
    EXPECT_LT(seconds_since(start), 60);
    EXPECT_LT(peak_bytes_of_children(), kAllowed);
    if (run.code != 0) expect_one_line(run, ": ");
    hung += hangs(run.err);
  }
}

// The same through the reader alone, without a program, which is faster.
TEST(HostileFiles, DamagedEmbeddingsAreAnInputErrorAtMost) {
  Random random(random_seed());
  const TemporaryFolder folder;
  const std::string path = folder.in("damaged.h5");
  const std::vector<std::byte> whole = read_file(kFixtures + "ok.h5", std::size_t{1} << 20);
  for (int i = 0, hung = 0; i < 200 && hung < kHangs; ++i) {
    std::vector<std::byte> damaged = whole;
    mutate(damaged, random);
    write_atomic(path, damaged);
    try {
      read_embeddings(path);
    } catch (const InputError& error) {
      ASSERT_TRUE(holds(error.what(), path));
      hung += hangs(error.what());
    }
  }
  EXPECT_LT(peak_bytes_of_children(), kAllowed);
}

CheckpointWriter small_checkpoint(const std::string& settings) {
  RunState run;
  run.step = 3;
  run.data = "glyphs 1234";
  run.settings = settings;
  run.history = {"{\"epoch\": 0}", "{\"epoch\": 1}"};
  run.classes = {"cup", "saucer"};
  CheckpointWriter writer({}, run);
  const std::vector<float> values(600, 0.5F);
  writer.weight("conv1.weight", {20, 30}, values.data());
  writer.optimizer_state("exp_avg", "conv1.weight", {20, 30}, values.data());
  return writer;
}

// Damaged checkpoints whose seal is valid, as an attacker can make them.
TEST(HostileFiles, DamagedCheckpointsWithAFreshSealAreAnInputErrorAtMost) {
  Random random(random_seed());
  const TemporaryFolder folder;
  const std::string path = folder.in("damaged.h5");
  std::vector<std::byte> whole = small_checkpoint("{}").finish();
  whole.resize(whole.size() - kSealBytes);
  for (int i = 0, hung = 0; i < 200 && hung < kHangs; ++i) {
    std::vector<std::byte> damaged = whole;
    mutate(damaged, random);
    seal(damaged);
    write_atomic(path, damaged);
    try {
      const Checkpoint checkpoint(path);
      std::vector<float> values(600);
      checkpoint.weight({"conv1.weight", {20, 30}}, values.data());
      checkpoint.optimizer_state("exp_avg", {"conv1.weight", {20, 30}}, values.data());
    } catch (const InputError& error) {
      ASSERT_TRUE(holds(error.what(), path));
      hung += hangs(error.what());
    }
  }
  EXPECT_LT(peak_bytes_of_children(), kAllowed);
}

// A validly sealed last.h5 whose settings are hostile must be refused.
TEST(HostileFiles, SettingsOfACheckpointAreLookedAt) {
  const std::string deep(100'000, '[');
  const std::string objects = [] {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += "{\"a\":";
    return text;
  }();
  const std::string wide = [] {
    std::string text = "{\"k\":0";
    for (int i = 0; i < 10'000; ++i) text += fmt::format(",\"k{}\":0", i);
    return text + "}";
  }();
  const std::pair<std::string, const char*> cases[] = {
      {"{\"data\":" + deep + std::string(deep.size(), ']') + "}", "nested deeper than 64"},
      {"{\"data\":" + objects + "1" + std::string(100'000, '}') + "}", "nested deeper than 64"},
      {"{\"data\":" + deep, "nested deeper than 64"},
      {wide, "an object of its JSON has more than 2000 keys"},
      {"{\"seed\":1,\"data\":[{}," + wide + "]}", "an object of its JSON has more than 2000 keys"},
      {"{\"data\":[[1]]}", "data: is neither a number, a text, a boolean nor a list of them"},
      {"{\"data\":{\"a\":1}}", "data: is neither a number"},
      {"[1]", "settings are no JSON object"},
      {"{", "no JSON"},
  };
  for (const auto& [settings, words] : cases) {
    const TemporaryFolder folder;
    write_atomic(folder.in(kLastFile), small_checkpoint(settings).finish());
    const Finished run = run_to_end({RK_BIN "/train", "--out", folder.path().string(), "--resume",
                                     "auto", "--device", "cpu", "-q"},
                                    folder.path().string());
    expect_one_line(run, words);
    EXPECT_TRUE(holds(run.err, "last.h5: "));
  }
}

}  // namespace
}  // namespace rk
