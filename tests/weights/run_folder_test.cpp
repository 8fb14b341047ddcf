#include "weights/run_folder.h"

#include "engine/base/error.h"
#include "engine/system/read_file.h"
#include "tests/support/folder_test.h"
#include "tests/support/heard_notes.h"
#include "tests/support/messages.h"
#include "tests/support/temporary_folder.h"
#include "weights/sealed_file.h"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace rk {
namespace {

namespace fs = std::filesystem;

class RunFolder : public FolderTest<TemporaryFolder> {
 protected:
  std::string refused(const std::string& folder) {
    return message_of<InputError>([&] { FolderLock(folder, calls_); });
  }

  FileCalls calls_;
};

class LockFails : public FileCalls {
 public:
  explicit LockFails(int error) : error_(error) {}
  int lock(int descriptor) override {
    if (error_ == EINTR && ++calls_ == 2) return FileCalls::lock(descriptor);
    errno = error_;
    return -1;
  }

 private:
  int error_, calls_ = 0;
};

TEST_F(RunFolder, ALockIsHeldByOneAndNamesIt) {
  const FolderLock held(in("run"), calls_);
  EXPECT_EQ(file_text(in("run/.lock")), std::to_string(::getpid()));
  EXPECT_TRUE(holds(refused(in("run")), fmt::format("another run (process {})", ::getpid())));
  EXPECT_TRUE(fs::exists(in("run/.lock"))) << "who was refused removed it";
}

TEST_F(RunFolder, WhatALockMadeGoesWithItUnlessKept) {
  { const FolderLock lock(in("a/b/c"), calls_); }
  EXPECT_FALSE(fs::exists(in("a")));
  fs::create_directories(in("there"));
  { const FolderLock lock(in("there"), calls_); }
  EXPECT_TRUE(fs::is_directory(in("there")));
  EXPECT_FALSE(fs::exists(in("there/.lock")));
  {
    const FolderLock lock(in("a/b"), calls_);
    folder_.write("a/b/somebody's", "x");
  }
  EXPECT_TRUE(fs::exists(in("a/b/somebody's")));
  {
    FolderLock lock(in("kept/here/"), calls_);
    lock.keep();
  }
  EXPECT_TRUE(fs::exists(in("kept/here/.lock")));
  // A lock file that was there before must stay.
  { const FolderLock lock(in("kept/here"), calls_); }
  EXPECT_TRUE(fs::exists(in("kept/here/.lock")));
}

TEST_F(RunFolder, ALockFileThatIsNotOursIsLeftAlone) {
  folder_.write("notes", "mine");
  folder_.write("digits", "12345");
  const auto refuse = [&](const std::string& name) {
    EXPECT_TRUE(holds(refused(in(name)), in(name + "/.lock") + ": is not the lock of a run"));
  };
  fs::create_directories(in("link"));
  fs::create_symlink(in("digits"), in("link/.lock"));
  refuse("link");
  EXPECT_EQ(file_text(in("digits")), "12345");
  fs::create_directories(in("hard"));
  fs::create_hard_link(in("digits"), in("hard/.lock"));
  refuse("hard");
  EXPECT_EQ(file_text(in("digits")), "12345");
  fs::create_directories(in("other"));
  fs::copy(in("notes"), in("other/.lock"));
  refuse("other");
  EXPECT_EQ(file_text(in("other/.lock")), "mine");
  fs::create_directories(in("pipe"));
  ASSERT_EQ(::mkfifo(in("pipe/.lock").c_str(), 0600), 0);
  refuse("pipe");
  fs::create_directories(in("dangling"));
  fs::create_symlink(in("nowhere"), in("dangling/.lock"));
  refuse("dangling");
  EXPECT_FALSE(fs::exists(in("nowhere")));
}

// That of a colleague, in a folder that both may write.
TEST_F(RunFolder, ALockThatMayNotBeWrittenIsNamed) {
  if (geteuid() == 0) GTEST_SKIP() << "the superuser may write everything";
  folder_.write("run/.lock", "1");
  fs::permissions(in("run/.lock"), fs::perms::owner_read);
  EXPECT_EQ(refused(in("run")), in("run") +
                                    "/.lock: cannot be written (Permission denied); check "
                                    "its permissions");
}

TEST_F(RunFolder, AFileSystemWithoutLocksIsANote) {
  for (const int error : {ENOSYS, ENOLCK, EOPNOTSUPP}) {
    const HeardNotes notes;
    LockFails calls(error);
    const FolderLock lock(in("run"), calls);
    ASSERT_EQ(notes.lines.size(), 1U) << error;
    EXPECT_TRUE(holds(notes.lines[0], in("run") + ": its file system has no locks ("));
  }
  LockFails interrupted(EINTR);
  const FolderLock lock(in("run"), interrupted);
}

// A lock file that another process removes between open() and flock() must not count as locked.
TEST_F(RunFolder, ALockFileThatVanishesIsMadeAgain) {
  class Removes : public FileCalls {
   public:
    explicit Removes(std::string path) : path_(std::move(path)) {}
    int lock(int descriptor) override {
      if (++calls == 1) fs::remove_all(fs::path(path_).parent_path());
      return FileCalls::lock(descriptor);
    }
    int calls = 0;

   private:
    std::string path_;
  } calls(in("run/.lock"));
  const FolderLock lock(in("run"), calls);
  EXPECT_EQ(calls.calls, 2);
  EXPECT_TRUE(fs::exists(in("run/.lock")));
  EXPECT_TRUE(holds(refused(in("run")), "another run"));
}

// If the folder is moved and another run begins in its place, the first run must notice.
TEST_F(RunFolder, AFolderThatWasReplacedIsAnothers) {
  const FolderLock mine(in("run"), calls_);
  EXPECT_NO_THROW(mine.require_own_folder());
  fs::rename(in("run"), in("moved"));
  EXPECT_FALSE(mine.replaced()) << "there is none";
  {
    const FolderLock theirs(in("run"), calls_);
    EXPECT_TRUE(mine.replaced());
    EXPECT_FALSE(theirs.replaced());
    EXPECT_TRUE(holds(message_of<InputError>([&] { mine.require_own_folder(); }),
                      in("run") + ": is not the folder that this run began in"));
    // Nor may a lock that ends remove another run's lock file.
    auto third = std::make_unique<FolderLock>(in("third"), calls_);
    fs::rename(in("third"), in("third moved"));
    fs::create_directory(in("third"));
    fs::copy(in("run/.lock"), in("third/.lock"));
    third.reset();
    EXPECT_TRUE(fs::exists(in("third/.lock")));
  }
  fs::rename(in("moved"), in("run"));
  EXPECT_FALSE(mine.replaced()) << "it is back";
}

TEST_F(RunFolder, AFolderThatCannotBeMadeIsSaid) {
  folder_.write("file", "x");
  EXPECT_TRUE(holds(refused(in("file")), in("file")));
  EXPECT_TRUE(holds(refused(in("file/run")), "cannot be made"));
}

TEST_F(RunFolder, WhatTheSystemDoesNotReadIsNotPassedOver) {
  RunState run;
  run.settings = "{}";
  const auto save = [&](const std::string& name, std::int64_t step) {
    run.step = step;
    write_atomic(in(name), CheckpointWriter(ModelDescription{}, run).finish());
  };
  save("last.h5", 2);
  save("previous.h5", 1);
  EXPECT_EQ(find_resumable(folder_.path().string()).checkpoint->run().step, 2);
  // In a child that may open no further file, the failure must not count as damage.
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none{3, 3};
    ::setrlimit(RLIMIT_NOFILE, &none);
    try {
      find_resumable(folder_.path().string());
    } catch (const SystemError&) {
      ::_exit(7);
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(2);  // it took another checkpoint
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  // Nor may what fails behind the check of the whole file: its bytes are those that were written.
  std::vector<std::byte> whole(100, std::byte{'x'});
  seal(whole);
  write_atomic(in("last.h5"), whole);
  const std::string said = message_of<InputError>([&] { find_resumable(folder_.path().string()); });
  EXPECT_TRUE(said.starts_with(in("last.h5") + ": ")) << said;
  folder_.write("last.h5", "damaged");
  const Resumable found = find_resumable(folder_.path().string());
  EXPECT_EQ(found.checkpoint->run().step, 1);
  EXPECT_TRUE(found.last_damaged);
}

TEST_F(RunFolder, FilesThatMayNotBeThatLargeAreRefusedBeforehand) {
  const std::string run = in("run");
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  EXPECT_NO_THROW(require_room(run, 3 * kMiB, 2, calls_));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{2 * kMiB, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_EQ(message_of<InputError>([&] { require_room(run, 3 * kMiB, 2, calls_); }),
            run +
                ": a checkpoint takes 3.0 MiB, and files may have 2.0 MiB here; raise that limit "
                "(ulimit -f)");
  EXPECT_NO_THROW(require_room(run, 2 * kMiB, 2, calls_));
  EXPECT_NO_THROW(require_room(run, 3 * kMiB, 0, calls_)) << "nothing will be written";
  ::setrlimit(RLIMIT_FSIZE, &before);
}

}  // namespace
}  // namespace rk
