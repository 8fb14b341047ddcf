#include "weights/atomic_file.h"

#include "engine/base/error.h"
#include "engine/base/text_of.h"
#include "tests/support/messages.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <iterator>

namespace rk {
namespace {

namespace fs = std::filesystem;

class AtomicFile : public ::testing::Test {
 protected:
  int files() const {
    return static_cast<int>(
        std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator{}));
  }

  const TemporaryFolder folder_;
  const fs::path path_ = folder_.path() / "last.h5";
};

// Writes in small pieces and fails the n-th call.
class FailingCalls : public FileCalls {
 public:
  explicit FailingCalls(int nth) : left_(nth) {}
  bool failed() const { return failed_; }
  const std::string& which() const { return which_; }

  int create(const char* path) override { return fails("create") ? -1 : FileCalls::create(path); }
  ssize_t write(int descriptor, const void* data, std::size_t bytes) override {
    if (fails("write")) return -1;
    return FileCalls::write(descriptor, data, std::min<std::size_t>(bytes, 5));
  }
  int set_mode(int descriptor, mode_t mode) override {
    return fails("set_mode") ? -1 : FileCalls::set_mode(descriptor, mode);
  }
  int sync(int descriptor) override { return fails("sync") ? -1 : FileCalls::sync(descriptor); }
  int close(int descriptor) override {
    const int result = FileCalls::close(descriptor);
    return fails("close") ? -1 : result;
  }
  int rename(const char* from, const char* to) override {
    return fails("rename") ? -1 : FileCalls::rename(from, to);
  }
  int link(const char* from, const char* to) override {
    return fails("link") ? -1 : FileCalls::link(from, to);
  }
  int sync_folder(const char* folder) override {
    return fails("sync_folder") ? -1 : FileCalls::sync_folder(folder);
  }

 private:
  bool fails(const char* which) {
    if (left_-- != 0) return false;
    failed_ = true;
    which_ = which;
    errno = EIO;
    return true;
  }
  int left_;
  bool failed_ = false;
  std::string which_;
};

TEST_F(AtomicFile, WritesAndReplaces) {
  write_atomic(path_, bytes_of("one"));
  EXPECT_EQ(file_text(path_), "one");
  write_atomic(path_, bytes_of("another"));
  EXPECT_EQ(file_text(path_), "another");
  write_atomic(path_, std::string_view());
  EXPECT_EQ(file_text(path_), "");
  EXPECT_EQ(files(), 1);
}

// Whichever call fails, the file must be whole: the old one, or after the rename the new one.
TEST_F(AtomicFile, EveryFailureLeavesAWholeFile) {
  const std::string old = "the old contents", fresh = "the new contents, longer";
  std::vector<std::string> failed;
  for (int n = 0;; ++n) {
    write_atomic(path_, bytes_of(old));
    FailingCalls calls(n);
    bool thrown = false;
    try {
      write_atomic(path_, bytes_of(fresh), calls);
    } catch (const InputError& error) {
      thrown = true;
      EXPECT_TRUE(holds(std::string(error.what()), path_.string()));
      EXPECT_TRUE(holds(std::string(error.what()), "Input/output error"));
    }
    EXPECT_EQ(files(), 1) << "a temporary file was left by call " << n;
    if (!calls.failed()) {
      EXPECT_FALSE(thrown);
      EXPECT_EQ(file_text(path_), fresh);
      break;
    }
    failed.push_back(calls.which());
    EXPECT_TRUE(thrown) << calls.which();
    EXPECT_EQ(file_text(path_), calls.which() == "sync_folder" ? fresh : old) << calls.which();
  }
  // create, set_mode, five writes of five bytes, sync, close, rename, sync_folder.
  EXPECT_EQ(failed,
            (std::vector<std::string>{"create", "set_mode", "write", "write", "write", "write",
                                      "write", "sync", "close", "rename", "sync_folder"}));
}

TEST_F(AtomicFile, AFailedFirstWriteLeavesNothing) {
  FailingCalls calls(3);
  EXPECT_THROW(write_atomic(path_, bytes_of("some new contents"), calls), InputError);
  EXPECT_EQ(files(), 0);
}

// After every failure the newest whole file must still exist, and the file before it may only have
// been replaced by that one.
TEST_F(AtomicFile, RotationNeverLosesTheNewestFile) {
  const fs::path previous = folder_.path() / "previous.h5";
  for (int n = 0;; ++n) {
    write_atomic(previous, bytes_of("first"));
    write_atomic(path_, bytes_of("second"));
    FailingCalls calls(n);
    bool thrown = false;
    try {
      write_rotating(path_, previous, bytes_of("third"), calls);
    } catch (const InputError&) {
      thrown = true;
    }
    EXPECT_EQ(files(), 2) << "call " << n;
    if (!calls.failed()) {
      EXPECT_EQ(file_text(path_), "third");
      EXPECT_EQ(file_text(previous), "second");
      EXPECT_GT(n, 6);
      break;
    }
    // Only a failed link is no error: without hard links the rotation renames instead.
    EXPECT_EQ(thrown, calls.which() != "link");
    const bool done = calls.which() == "link" || calls.which() == "sync_folder";
    EXPECT_EQ(file_text(path_), done ? "third" : "second") << calls.which();
    EXPECT_NE(file_text(previous), "third") << calls.which();
  }
}

TEST_F(AtomicFile, RotationWithNothingToRotate) {
  FileCalls calls;
  write_rotating(path_, folder_.path() / "previous.h5", bytes_of("x"), calls);
  EXPECT_EQ(files(), 1);
}

// last.h5 may be a symbolic link to a larger disk, where hard links and renames cannot reach.
TEST_F(AtomicFile, RotationReachesAnotherFileSystem) {
  class Apart : public FileCalls {
   public:
    int link(const char* from, const char* to) override {
      return same(from, to) ? FileCalls::link(from, to) : -1;
    }
    int rename(const char* from, const char* to) override {
      return same(from, to) ? FileCalls::rename(from, to) : -1;
    }

   private:
    static bool same(const fs::path& a, const fs::path& b) {
      errno = EXDEV;
      return a.parent_path() == b.parent_path();
    }
  } calls;
  fs::create_directory(folder_.path() / "disk");
  write_atomic(folder_.path() / "disk" / "last.h5", bytes_of("one"));
  fs::create_symlink(folder_.path() / "disk" / "last.h5", path_);
  const fs::path previous = folder_.path() / "previous.h5";
  for (const std::string now : {"two", "three"}) {
    const std::string before = file_text(path_);
    write_rotating(path_, previous, bytes_of(now), calls);
    EXPECT_TRUE(fs::is_symlink(path_));
    EXPECT_EQ(file_text(path_), now);
    EXPECT_EQ(file_text(previous), before);
  }
  EXPECT_EQ(files(), 3);
}

TEST_F(AtomicFile, InterruptedWritesGoOn) {
  class Interrupted : public FileCalls {
   public:
    ssize_t write(int descriptor, const void* data, std::size_t bytes) override {
      errno = EINTR;
      return ++calls_ % 2 == 1
                 ? -1
                 : FileCalls::write(descriptor, data, std::min<std::size_t>(bytes, 2));
    }
    int calls_ = 0;
  } calls;
  write_atomic(path_, bytes_of("contents"), calls);
  EXPECT_EQ(file_text(path_), "contents");
  EXPECT_EQ(calls.calls_, 8);
}

TEST_F(AtomicFile, KeepsTheModeOfAReplacedFile) {
  write_atomic(path_, bytes_of("x"));
  ASSERT_EQ(::chmod(path_.c_str(), 0640), 0);
  write_atomic(path_, bytes_of("y"));
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
}

TEST_F(AtomicFile, FollowsALink) {
  write_atomic(folder_.path() / "target", bytes_of("x"));
  fs::create_symlink("target", path_);
  write_atomic(path_, bytes_of("y"));
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_EQ(file_text(folder_.path() / "target"), "y");
}

TEST_F(AtomicFile, FollowsALinkToAFileThatIsNotThereYet) {
  fs::create_directory(folder_.path() / "disk");
  fs::create_symlink("disk/second", path_);
  fs::create_symlink("target", folder_.path() / "disk" / "second");
  FileCalls calls;
  write_rotating(path_, folder_.path() / "previous.h5", bytes_of("x"), calls);
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_TRUE(fs::is_symlink(folder_.path() / "disk" / "second"));
  EXPECT_EQ(file_text(folder_.path() / "disk" / "target"), "x");
  EXPECT_EQ(files(), 2);
  // A link into a missing folder, and one in a circle of links, must be refused and stay.
  fs::create_symlink("none/target", folder_.path() / "nowhere");
  fs::create_symlink("round", folder_.path() / "round");
  for (const char* name : {"nowhere", "round"}) {
    EXPECT_TRUE(
        holds(message_of<InputError>([&] { write_atomic(folder_.path() / name, bytes_of("x")); }),
              folder_.in(name)));
    EXPECT_TRUE(fs::is_symlink(folder_.path() / name));
  }
}

TEST_F(AtomicFile, RefusesWhatIsNoFile) {
  fs::create_directory(path_);
  EXPECT_THROW(write_atomic(path_, bytes_of("x")), InputError);
  const fs::path pipe = folder_.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(write_atomic(pipe, bytes_of("x")), InputError);
  EXPECT_THROW(write_atomic(folder_.path() / "none" / "x", bytes_of("x")), InputError);
}

TEST_F(AtomicFile, SaysEarlyThatTheDiskIsFull) {
  class Full : public FileCalls {
   public:
    std::uint64_t free_bytes(const char*) override { return 3; }
    int create(const char*) override {
      ADD_FAILURE() << "it tried all the same";
      return -1;
    }
  } calls;
  EXPECT_THROW(write_atomic(path_, bytes_of("four"), calls), InputError);
}

TEST_F(AtomicFile, RemovesOnlyWhatTheDeadLeft) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);  // no process has this number now
  const std::string dead = ".last.h5.tmp." + std::to_string(child);
  const std::string alive = ".last.h5.tmp.1";
  const std::string pid = std::to_string(child);
  const std::vector<std::string> kept = {
      alive,     "last.h5.tmp." + pid,    ".last.h5.tmp.12x",  ".last.h5.tmp.",
      "best.h5", ".notes.txt.tmp." + pid, ".bashrc.tmp." + pid};
  write_atomic(folder_.path() / dead, bytes_of("x"));
  for (const std::string& name : kept) write_atomic(folder_.path() / name, bytes_of("x"));
  fs::create_symlink(folder_.path() / "best.h5", folder_.path() / (".best.h5.tmp." + pid));
  const std::vector<std::string> ours = {"best.h5", "last.h5"};
  remove_stale_temporaries(folder_.path(), ours);
  EXPECT_FALSE(fs::exists(folder_.path() / dead));
  for (const std::string& name : kept) EXPECT_TRUE(fs::exists(folder_.path() / name)) << name;
  EXPECT_EQ(files(), 8);
}

// A disk that returns other bytes than were written.
TEST(AtomicFileChecked, IsComparedBeforeItTakesItsPlace) {
  struct Flipping : FileCalls {
    ssize_t write(int descriptor, const void* data, std::size_t bytes) override {
      std::string changed(static_cast<const char*>(data), bytes);
      changed[bytes / 2] = static_cast<char>(changed[bytes / 2] ^ 1);
      return FileCalls::write(descriptor, changed.data(), bytes);
    }
  };
  const TemporaryFolder folder;
  folder.write("f", "before");
  const std::string path = folder.in("f");
  const std::string text(std::size_t{3} << 20, 'x');
  const std::span<const std::byte> bytes = bytes_of(text);
  Flipping flipping;
  FileCalls calls;
  EXPECT_TRUE(holds(message_of<InputError>([&] {
                      write_atomic_checked(
                          path, bytes, [] {}, flipping);
                    }),
                    "is not what was written"));
  EXPECT_EQ(file_text(path), "before");
  EXPECT_THROW(write_atomic_checked(
                   path, bytes, [] { throw InputError("not so"); }, calls),
               InputError);
  EXPECT_EQ(file_text(path), "before");
  write_atomic_checked(
      path, bytes, [] {}, calls);
  EXPECT_EQ(file_text(path), text);
}

}  // namespace
}  // namespace rk
