#include "engine/system/read_file.h"

#include "engine/base/error.h"
#include "tests/support/messages.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace rk {
namespace {

namespace fs = std::filesystem;

class ReadFile : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
};

TEST_F(ReadFile, ReadsAllOfItUpToALimit) {
  const fs::path path = folder_.path() / "five";
  std::ofstream(path) << "12345";
  const std::vector<std::byte> bytes = read_file(path.string(), 5);
  ASSERT_EQ(bytes.size(), 5U);
  EXPECT_EQ(std::memcmp(bytes.data(), "12345", 5), 0);
  EXPECT_THROW(read_file(path.string(), 4), InputError);
}

TEST_F(ReadFile, ExistsUnlessTheSystemSaysOtherwise) {
  const fs::path path = folder_.path() / "five";
  std::ofstream(path) << "12345";
  EXPECT_TRUE(file_exists(path.string()));
  EXPECT_TRUE(file_exists(folder_.path().string()));
  EXPECT_FALSE(file_exists(folder_.in("six")));
  EXPECT_FALSE(file_exists((path / "below").string()));
  fs::create_symlink("circle", folder_.path() / "circle");
  EXPECT_THROW(file_exists(folder_.in("circle")), InputError);
}

// Failures of the system are told apart from faults of the file.
TEST_F(ReadFile, TheSystemsFailuresAreTheirOwn) {
  const fs::path path = folder_.path() / "five";
  std::ofstream(path) << "12345";
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  std::string said;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  try {
    read_file(path.string(), 5);
  } catch (const SystemError& error) {
    said = error.what();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(said, path.string() +
                      ": cannot be opened (Too many open files); raise the limit of open "
                      "files (ulimit -n)");
  // The kernel maps nothing at a process's address 0.
  const RegularFile memory("/proc/self/mem", 5);
  std::array<std::byte, 5> bytes{};
  EXPECT_EQ(message_of<SystemError>([&] { memory.read(0, bytes); }),
            "/proc/self/mem: cannot be read (Input/output error); check the disk or the network "
            "mount");
  try {
    read_file(folder_.in("none"), 5);
    ADD_FAILURE();
  } catch (const SystemError&) {
    ADD_FAILURE() << "a file that is not there is no failure of the system";
  } catch (const InputError&) {
  }
}

TEST_F(ReadFile, RefusesWhatIsNoFile) {
  const fs::path pipe = folder_.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(read_file(pipe.string(), 10), InputError);  // and does not wait for a writer
  EXPECT_THROW(read_file(folder_.path().string(), 10), InputError);
  EXPECT_THROW(read_file("/dev/zero", 10), InputError);
  EXPECT_THROW(read_file(folder_.in("none"), 10), InputError);
}

TEST_F(ReadFile, ReadsAnEmptyFile) {
  const fs::path path = folder_.path() / "empty";
  std::ofstream file(path);
  EXPECT_TRUE(read_file(path.string(), 10).empty());
}

}  // namespace
}  // namespace rk
