#include "retrieval/files/mapped_file.h"

#include "engine/base/error.h"
#include "engine/base/text_of.h"
#include "tests/support/messages.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

namespace rk {
namespace {

namespace fs = std::filesystem;

TEST(MappedFile, HoldsTheFilesBytes) {
  const TemporaryFolder folder;
  folder.write("a", "some bytes");
  const MappedFile file(folder.path() / "a");
  EXPECT_EQ(text_of(file.bytes()), "some bytes");
  folder.write("empty", "");
  EXPECT_TRUE(MappedFile(folder.path() / "empty").bytes().empty());
  EXPECT_NO_THROW(check_mapped_files());
}

// Several threads read a file at once whose end has been cut off, pages and all.
TEST(MappedFile, AFileThatIsCutOffReadsAsZerosAndIsNamed) {
  const TemporaryFolder folder;
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  folder.write("cut", std::string(kBytes, 'x'));
  folder.write("other", std::string(kBytes, 'x'));
  const MappedFile other(folder.path() / "other");
  {
    const MappedFile file(folder.path() / "cut");
    fs::resize_file(folder.path() / "cut", 4096);
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        EXPECT_EQ(std::count(file.bytes().begin(), file.bytes().end(), std::byte{'x'}), 4096);
      });
    }
    for (std::thread& each : threads) each.join();
    const std::string said = message_of<InputError>([] { check_mapped_files(); });
    EXPECT_TRUE(said.starts_with(folder.in("cut") + ": was written to")) << said;
  }
  // The complaint goes with the file.
  EXPECT_NO_THROW(check_mapped_files());
  EXPECT_EQ(other.bytes().back(), std::byte{'x'});
}

// By numpy.save() or cp: of the same size, in the same place.
TEST(MappedFile, AFileThatIsWrittenAnewIsNamed) {
  const TemporaryFolder folder;
  folder.write("rows", "before");
  const MappedFile file(folder.path() / "rows");
  EXPECT_NO_THROW(check_mapped_files());
  // A clock may not have moved on since it was written.
  const auto later = fs::last_write_time(folder.path() / "rows") + std::chrono::seconds(1);
  folder.write("rows", "after_");
  fs::last_write_time(folder.path() / "rows", later);
  const std::string said = message_of<InputError>([] { check_mapped_files(); });
  EXPECT_TRUE(said.starts_with(folder.in("rows") + ": was written to")) << said;
}

// Replaced, as by a file that is renamed to its name: what is mapped stays.
TEST(MappedFile, AFileThatIsReplacedStaysAsItWas) {
  const TemporaryFolder folder;
  folder.write("rows", "before");
  folder.write("new", "after_");
  const MappedFile file(folder.path() / "rows");
  fs::rename(folder.path() / "new", folder.path() / "rows");
  EXPECT_NO_THROW(check_mapped_files());
  EXPECT_EQ(file.bytes()[0], std::byte{'b'});
}

TEST(MappedFile, MoreThanItsSlotsAreRefused) {
  const TemporaryFolder folder;
  folder.write("a", "x");
  std::vector<std::unique_ptr<MappedFile>> files;
  files.reserve(16);
  for (int i = 0; i < 16; ++i) files.push_back(std::make_unique<MappedFile>(folder.path() / "a"));
  EXPECT_TRUE(holds(message_of<InputError>([&] { MappedFile(folder.path() / "a"); }), "16 files"));
  files.pop_back();
  EXPECT_NO_THROW(MappedFile(folder.path() / "a"));
}

}  // namespace
}  // namespace rk
