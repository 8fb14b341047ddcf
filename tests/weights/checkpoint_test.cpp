#include "weights/checkpoint.h"

#include "engine/base/error.h"
#include "engine/base/sanitizers.h"
#include "engine/base/text_of.h"
#include "engine/system/read_file.h"
#include "tests/support/messages.h"
#include "tests/support/temporary_folder.h"
#include "weights/atomic_file.h"
#include "weights/foreign/weight_files.h"
#include "weights/run_folder.h"
#include "weights/sealed_file.h"

#include <gtest/gtest.h>
#include <hdf5.h>
#include <openssl/evp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <set>

namespace rk {
namespace {

namespace fs = std::filesystem;

struct State {
  ModelDescription model;
  RunState run;
  std::vector<float> conv = {1, 2, 3, 4, 5, 6};
  std::vector<float> variance = {0.5F, 2.0F};
  std::int64_t tracked = 41;
  std::vector<float> momentum = {-1, -2, -3, -4, -5, -6};

  State() {
    model.arch = "resnet18";
    model.dim = 128;
    model.stride_in_1x1 = true;
    model.input_mean = {0.1, 0.2, 0.3};
    model.source_sha256 = std::string(64, 'a');
    run = {.step = 7,
           .epoch = 2,
           .batch = 3,
           .seed = ~std::uint64_t{0},
           .best = 0.25,
           .since_best = 4,
           .loss_sum = 1.5,
           .data = "glyphs 1234",
           .held_out = "glyphs 77",
           .held_out_classes = {"dogs/pug"},
           .environment = "a machine",
           .settings = "{\"loss\": \"fastap\"}",
           .history = {"{\"epoch\": 0}", "{\"epoch\": 1}"},
           .classes = {"cats/tabby", "cup"},
           .bad_images = {9, 2},
           .loss_scale = {.updates = 5, .scale = 1024.0, .good_steps = 3}};
  }
  std::vector<std::byte> bytes() const {
    CheckpointWriter writer(model, run);
    writer.weight("conv1.weight", {2, 3, 1, 1}, conv.data());
    writer.weight("bn1.running_var", {2}, variance.data());
    writer.counter("bn1.num_batches_tracked", tracked);
    writer.optimizer_state("exp_avg", "conv1.weight", {2, 3, 1, 1}, momentum.data());
    return writer.finish();
  }
};

const std::vector<TensorName> kWeights = {{"conv1.weight", {2, 3, 1, 1}}, {"bn1.running_var", {2}}};
const std::vector<std::string> kCounters = {"bn1.num_batches_tracked"};

class CheckpointTest : public ::testing::Test {
 protected:
  std::string save(const std::vector<std::byte>& bytes) {
    write_atomic(path_, bytes);
    return path_;
  }
  std::string refusal(const std::function<void()>& f) {
    std::string message = message_of<InputError>(f);
    EXPECT_TRUE(holds(message, folder_));
    return message;
  }
  // A whole checkpoint that says that it is of another version.
  std::vector<std::byte> with_version(std::int64_t version) {
    std::vector<std::byte> bytes = State().bytes();
    bytes.resize(bytes.size() - kSealBytes);
    save(bytes);
    const hid_t file = H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    const hid_t attribute = H5Aopen(file, "version", H5P_DEFAULT);
    EXPECT_GE(H5Awrite(attribute, H5T_NATIVE_INT64, &version), 0);
    H5Aclose(attribute);
    H5Fclose(file);
    bytes = read_file(path_, std::size_t{1} << 20);
    seal(bytes);
    return bytes;
  }
  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path().string();
  const std::string path_ = folder_ + "/last.h5";
};

TEST_F(CheckpointTest, ReadsBackWhatWasWritten) {
  const State state;
  const Checkpoint read(save(state.bytes()));
  EXPECT_TRUE(read.model() == state.model);
  EXPECT_TRUE(read.run() == state.run);
  read.require(kWeights, kCounters);
  std::vector<float> values(6);
  read.weight(kWeights[0], values.data());
  EXPECT_EQ(values, state.conv);
  read.optimizer_state("exp_avg", kWeights[0], values.data());
  EXPECT_EQ(values, state.momentum);
  EXPECT_EQ(read.counter("bn1.num_batches_tracked"), 41);
}

// The identity must not depend on the state of the run, but on every weight and on how images are
// prepared.
TEST_F(CheckpointTest, TheNetworkHasAnIdentity) {
  State state;
  const std::string network = Checkpoint(save(state.bytes())).network();
  EXPECT_EQ(network.size(), 64U);
  state.run.step = 8;
  state.run.settings = "{}";
  state.momentum[0] = 5;
  state.tracked = 42;
  EXPECT_EQ(Checkpoint(save(state.bytes())).network(), network);
  State other;
  other.conv[3] = std::nextafter(other.conv[3], 9.0F);
  EXPECT_NE(Checkpoint(save(other.bytes())).network(), network);
  State fed;
  fed.model.crop = 128;
  EXPECT_NE(Checkpoint(save(fed.bytes())).network(), network);
  State stretched;
  stretched.model.stretch = true;
  const Checkpoint square(save(stretched.bytes()));
  EXPECT_TRUE(square.model().stretch);
  EXPECT_NE(square.network(), network);
}

TEST_F(CheckpointTest, EqualStatesAreEqualBytes) {
  EXPECT_EQ(State().bytes(), State().bytes());
  State other;
  other.conv[0] = std::nextafter(1.0F, 2.0F);
  EXPECT_NE(State().bytes(), other.bytes());
}

TEST_F(CheckpointTest, OtherProgramsOpenItWithTheSeal) {
  const Hdf5Reader plain(save(State().bytes()));
  EXPECT_EQ(plain.read<float>("/weights/conv1.weight"), State().conv);
}

// A flipped bit or a cut anywhere must be noticed.
TEST_F(CheckpointTest, DamageIsRefused) {
  const std::vector<std::byte> whole = State().bytes();
  for (std::size_t at = 0; at < whole.size() - 8; at += 97) {
    std::vector<std::byte> damaged = whole;
    damaged[at] ^= std::byte{0x10};
    refusal([&] { Checkpoint c(save(damaged)); });
  }
  for (const std::size_t cut : {std::size_t{1}, std::size_t{64}, whole.size() / 2, whole.size()}) {
    std::vector<std::byte> cut_short(whole.begin(), whole.end() - static_cast<std::ptrdiff_t>(cut));
    refusal([&] { Checkpoint c(save(cut_short)); });
  }
  std::vector<std::byte> longer = whole;
  longer.push_back(std::byte{0});
  refusal([&] { Checkpoint c(save(longer)); });
}

// Returns the peak memory that `work` adds to a child process, plus the peak of the largest process
// that the child starts.
std::uint64_t peak_growth(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto peak = [](int whose) {
      rusage usage{};
      ::getrusage(static_cast<__rusage_who>(whose), &usage);
      return usage.ru_maxrss;
    };
    const long before = peak(RUSAGE_SELF);
    work();
    const long mib = (peak(RUSAGE_SELF) - before + peak(RUSAGE_CHILDREN)) / 1024;
    ::_exit(static_cast<int>(std::min(mib, 255L)));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  return static_cast<std::uint64_t>(WEXITSTATUS(status)) << 20;
}

TEST_F(CheckpointTest, ReadingTakesAtMostTwiceTheFile) {
  if (RK_SANITIZED) GTEST_SKIP() << "sanitizers keep what was freed, and shadows of all of it";
  constexpr std::int64_t kRows = 3000, kColumns = 4096;  // 47 MiB
  const auto count = static_cast<std::size_t>(kRows * kColumns);
  const TensorName tensor{"embedding.weight", {kRows, kColumns}};
  {
    const State state;
    const std::vector<float> values(count, 0.25F);
    CheckpointWriter writer(state.model, state.run);
    writer.weight(tensor.name, tensor.dims, values.data());
    writer.optimizer_state("exp_avg", tensor.name, tensor.dims, values.data());
    save(writer.finish());
  }
  const std::uint64_t file = fs::file_size(path_);
  const std::uint64_t growth = peak_growth([&] {
    const Checkpoint checkpoint(path_);
    std::vector<float> weight(count), state(count);
    checkpoint.weight(tensor, weight.data());
    checkpoint.optimizer_state("exp_avg", tensor, state.data());
  });
  EXPECT_GT(growth, file / 2);  // at least the tensors: the measurement works
  EXPECT_LE(growth, 2 * file);
}

// A file that is replaced between the check of its seal and the reading of its tensors must be
// noticed by its identity.
TEST_F(CheckpointTest, HasTheIdentityOfTheFileThatWasChecked) {
  save(State().bytes());
  const Seal seal = check_seal(path_);
  EXPECT_EQ(Hdf5Reader(path_).identity(), seal.file);
  // The digest must be that of the whole file, as sha256sum prints it.
  const std::vector<std::byte> all = read_file(path_, std::size_t{1} << 30);
  std::array<std::uint8_t, 32> digest{};
  ASSERT_EQ(EVP_Digest(all.data(), all.size(), digest.data(), nullptr, EVP_sha256(), nullptr), 1);
  EXPECT_EQ(seal.digest, digest);
  EXPECT_EQ(Checkpoint(path_).sha256(), hexadecimal(digest));
  EXPECT_EQ(Checkpoint(path_, all).sha256(), hexadecimal(digest));
  EXPECT_EQ(Checkpoint(path_, seal).run().step, 7);
  save(State().bytes());  // equal bytes, another file
  EXPECT_NE(Hdf5Reader(path_).identity(), seal.file);
  EXPECT_TRUE(holds(refusal([&] { Checkpoint(path_, seal); }), "was replaced while it was read"));
}

// The fields of files are kept under their names in every version, so it is the version that says
// what they mean. A run must not go on from an earlier checkpoint, which would replace this one.
TEST_F(CheckpointTest, OtherVersionsAreRefusedAndKept) {
  FileCalls calls;
  save_last(folder_, State().bytes(), calls);
  save_last(folder_, State().bytes(), calls);
  std::vector<std::byte> sealed_by_another = State().bytes();
  sealed_by_another[sealed_by_another.size() - kSealBytes + 8] = std::byte{2};
  const std::pair<std::vector<std::byte>, const char*> others[] = {
      {with_version(2), "has version 2 of the format, this program reads 1; use a newer Rankine"},
      {with_version(0), "has version 0 of the format, this program reads 1; use an older Rankine"},
      {sealed_by_another, "was written by a newer Rankine (seal 2); use that version"}};
  for (const auto& [bytes, part] : others) {
    EXPECT_TRUE(holds(refusal([&, &bytes = bytes] { Checkpoint c(save(bytes)); }),
                      "last.h5: " + std::string(part)))
        << part;
    EXPECT_TRUE(holds(refusal([&] { find_resumable(folder_); }), "last.h5: " + std::string(part)))
        << part;
  }
}

TEST_F(CheckpointTest, AnotherNetworkIsRefusedByName) {
  const Checkpoint read(save(State().bytes()));
  const std::string missing = refusal([&] {
    read.require({{"conv1.weight", {2, 3, 1, 1}}, {"layer1.0.conv3.weight", {4}}}, kCounters);
  });
  EXPECT_TRUE(holds(missing, "resnet18"));
  EXPECT_TRUE(holds(missing, "1 missing: layer1.0.conv3.weight"));
  EXPECT_TRUE(holds(missing, "1 not expected: bn1.running_var"));
  const std::string shape = refusal([&] {
    read.require({{"conv1.weight", {2, 3, 7, 7}}, {"bn1.running_var", {2}}}, kCounters);
  });
  EXPECT_TRUE(holds(shape, "conv1.weight [2, 3, 1, 1] where [2, 3, 7, 7] is expected"));
  read.require({{"conv1.weight", {2, 3, 1, 1}}, {"embedding.weight", {9}}}, kCounters,
               {"embedding.", "bn1.running"});
}

TEST_F(CheckpointTest, WeightsThatAreNoNumbersAreRefused) {
  State state;
  state.conv[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(holds(refusal([&] { Checkpoint c(save(state.bytes())); }), "conv1.weight holds NaN"));
  state.conv[3] = -std::numeric_limits<float>::infinity();
  refusal([&] { Checkpoint c(save(state.bytes())); });
  state.conv[3] = 0;
  state.variance[1] = -1e-9F;
  EXPECT_TRUE(holds(refusal([&] { Checkpoint c(save(state.bytes())); }), "negative variance"));
  // A variance stored as an integer is read as a weight, too, so it must be checked as well.
  CheckpointWriter writer(state.model);
  writer.counter("bn1.running_var", -1);
  EXPECT_TRUE(holds(refusal([&] { Checkpoint c(save(writer.finish())); }), "negative variance"));
}

// What a loss keeps is part of the training's state as much as weights are.
TEST_F(CheckpointTest, ProxiesAndMemoryThatAreNoNumbersAreRefused) {
  const std::vector<std::int64_t> one = {1};
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const std::vector<float> row = {1, bad};
    CheckpointWriter proxies(State().model, State().run), memory(State().model, State().run);
    proxies.loss_parameter("proxies", {1, 2}, row.data());
    memory.memory({.dim = 2, .next = 1, .embeddings = row, .labels = one, .image_ids = one});
    EXPECT_TRUE(holds(refusal([&] { Checkpoint c(save(proxies.finish())); }), "proxies holds NaN"));
    EXPECT_TRUE(
        holds(refusal([&] { Checkpoint c(save(memory.finish())); }), "embeddings holds NaN"));
  }
}

// Texts take many times their stored size in memory, and no weight can be read from them.
TEST_F(CheckpointTest, WeightsThatAreTextAreRefused) {
  std::vector<std::byte> bytes = State().bytes();
  bytes.resize(bytes.size() - kSealBytes);
  save(bytes);
  const hid_t file = H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t space = H5Screate(H5S_SCALAR);
  const hid_t set = H5Dcreate2(file, "/weights/bn1.weight", H5T_C_S1, space, H5P_DEFAULT,
                               H5P_DEFAULT, H5P_DEFAULT);
  ASSERT_GE(H5Dwrite(set, H5T_C_S1, H5S_ALL, H5S_ALL, H5P_DEFAULT, "x"), 0);
  H5Dclose(set);
  H5Sclose(space);
  H5Fclose(file);
  bytes = read_file(path_, std::size_t{1} << 20);
  seal(bytes);
  EXPECT_TRUE(
      holds(refusal([&, &bytes = bytes] { Checkpoint c(save(bytes)); }), "bn1.weight holds text"));
}

// source_sha256 becomes part of texts, so it must be 64 hexadecimal digits or empty.
TEST_F(CheckpointTest, ASourceIsASumOrNothing) {
  State state;
  for (const std::string& sum : {std::string(), std::string(64, '7')}) {
    state.model.source_sha256 = sum;
    EXPECT_EQ(Checkpoint(save(state.bytes())).model().source_sha256, sum);
  }
  for (const std::string& sum :
       {std::string("abc"), std::string(64, 'g'), std::string(65, 'a'), std::string(64, '\xff')}) {
    state.model.source_sha256 = sum;
    EXPECT_TRUE(
        holds(refusal([&] { Checkpoint c(save(state.bytes())); }), "source_sha256 is neither"));
  }
}

TEST_F(CheckpointTest, CountsBelowZeroAreRefused) {
  using Count = std::int64_t& (*)(RunState&);
  const Count counts[] = {
      [](RunState& r) -> std::int64_t& { return r.step; },
      [](RunState& r) -> std::int64_t& { return r.epoch; },
      [](RunState& r) -> std::int64_t& { return r.batch; },
      [](RunState& r) -> std::int64_t& { return r.since_best; },
      [](RunState& r) -> std::int64_t& { return r.loss_scale.updates; },
      [](RunState& r) -> std::int64_t& { return r.loss_scale.good_steps; },
  };
  for (const Count count : counts) {
    State state;
    count(state.run) = -1;
    EXPECT_TRUE(holds(refusal([&] { Checkpoint c(save(state.bytes())); }), "makes no sense"));
  }
}

TEST_F(CheckpointTest, ValuesThatAreNotFiniteAreRefused) {
  using Value = double& (*)(RunState&);
  const Value values[] = {
      [](RunState& r) -> double& { return r.best; },
      [](RunState& r) -> double& { return r.loss_sum; },
      [](RunState& r) -> double& { return r.loss_scale.scale; },
  };
  for (const Value value : values) {
    for (const double bad :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      State state;
      value(state.run) = bad;
      EXPECT_TRUE(holds(refusal([&] { Checkpoint c(save(state.bytes())); }), "makes no sense"));
    }
  }
}

// Embeddings are compared only with those of the same network: its weights, and how it wants its
// images and pools them.
TEST_F(CheckpointTest, EveryPartOfANetworkTellsItFromOthers) {
  using Change = void (*)(ModelDescription&);
  const Change changes[] = {
      [](ModelDescription&) {},
      [](ModelDescription& m) { m.arch = "resnet50"; },
      [](ModelDescription& m) { m.pool = "gem"; },
      [](ModelDescription& m) { m.gem_p = 2.5; },
      [](ModelDescription& m) { m.dim = 64; },
      [](ModelDescription& m) { m.stride_in_1x1 = false; },
      [](ModelDescription& m) { m.input_mean[2] = 0.4; },
      [](ModelDescription& m) { m.input_std[2] = 0.4; },
      [](ModelDescription& m) { m.resize += 1; },
      [](ModelDescription& m) { m.crop -= 1; },
  };
  std::set<std::string> networks;
  for (const Change change : changes) {
    State state;
    change(state.model);
    networks.insert(Checkpoint(save(state.bytes())).network());
  }
  EXPECT_EQ(networks.size(), std::size(changes));
}

TEST_F(CheckpointTest, OtherSealedFilesAreRefused) {
  Hdf5Writer writer;
  const float x = 1;
  writer.write("/embeddings", {1, 1}, &x);
  std::vector<std::byte> bytes = writer.finish();
  EXPECT_TRUE(holds(refusal([&, &bytes = bytes] { Checkpoint c(save(bytes)); }), "checksum"));
  seal(bytes);
  EXPECT_TRUE(
      holds(refusal([&, &bytes = bytes] { Checkpoint c(save(bytes)); }), "not a checkpoint"));
}

TEST_F(CheckpointTest, ResumesFromTheNewestValid) {
  EXPECT_EQ(find_resumable(folder_).checkpoint, nullptr);
  FileCalls calls;
  const auto at_step = [](std::int64_t step) {
    State state;
    state.run.step = step;
    return state.bytes();
  };
  save_last(folder_, at_step(1), calls);
  save_best(folder_, at_step(1), calls);
  save_last(folder_, at_step(2), calls);
  save_last(folder_, at_step(3), calls);
  Resumable found = find_resumable(folder_);
  EXPECT_EQ(found.checkpoint->run().step, 3);
  EXPECT_TRUE(found.skipped.empty());

  std::vector<std::byte> damaged = at_step(3);
  damaged[damaged.size() / 2] ^= std::byte{1};
  write_atomic(folder_ + "/last.h5", damaged);
  found = find_resumable(folder_);
  EXPECT_EQ(found.checkpoint->run().step, 2);
  EXPECT_TRUE(found.checkpoint->path().ends_with("previous.h5"));
  ASSERT_EQ(found.skipped.size(), 1U);
  EXPECT_TRUE(holds(found.skipped[0], "last.h5: is damaged"));

  // Saving over a damaged last.h5 must not rotate it over the good previous.h5.
  EXPECT_TRUE(found.last_damaged);
  save_last(folder_, at_step(4), calls, Rotate::kDropDamaged);
  EXPECT_EQ(Checkpoint(folder_ + "/previous.h5").run().step, 2);
  write_atomic(folder_ + "/last.h5", damaged);

  // best.h5 may be newer than previous.h5 and is then preferred.
  save_best(folder_, at_step(3), calls);
  EXPECT_TRUE(find_resumable(folder_).checkpoint->path().ends_with("best.h5"));

  write_atomic(folder_ + "/previous.h5", damaged);
  write_atomic(folder_ + "/best.h5", std::string_view());
  EXPECT_TRUE(holds(refusal([&] { find_resumable(folder_); }), "no valid checkpoint"));
}

TEST_F(CheckpointTest, OneRunAFolder) {
  FileCalls calls;
  {
    const FolderLock lock(folder_, calls);
    EXPECT_TRUE(
        holds(refusal([&] { FolderLock second(folder_, calls); }), std::to_string(::getpid())));
  }
  // The lock must go with a process that ends without releasing it.
  const pid_t child = ::fork();
  if (child == 0) {
    const FolderLock lock(folder_, calls);
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const FolderLock lock(folder_, calls);
}

// A pipe without a writer must not be waited for.
TEST_F(CheckpointTest, WhatIsNoFileIsNotSealed) {
  EXPECT_TRUE(is_sealed(save(State().bytes())));
  EXPECT_FALSE(is_sealed(folder_));
  EXPECT_FALSE(is_sealed(folder_ + "/none"));
  EXPECT_FALSE(is_sealed(save(std::vector<std::byte>(kSealBytes - 1))));
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(is_sealed(pipe));
  std::vector<std::string> said;
  EXPECT_TRUE(holds(refusal([&] { open_weights(pipe, "", said); }), "not a regular file"));
}

TEST(SealedFile, KnownDigest) {
  // FIPS 180-2, appendix B.1.
  EXPECT_EQ(hexadecimal(sha256(bytes_of("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace rk
