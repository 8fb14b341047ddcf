// Replaces a file completely or not at all, even if the program or the machine stops at any moment.
//
// The bytes go to a new file `.<name>.tmp.<pid>` in the same folder, which is synced to the disk
// and renamed to its final name; then the folder is synced. The old file is unchanged until the
// rename. If a write, sync, close or rename fails, the temporary file is removed and InputError
// names the path and the system's reason; a failed sync is never retried on the same file, since
// the system may have dropped the pages. A replaced file keeps its mode; a symbolic link is
// followed, even to a file that does not exist yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace rk {

// The system calls used, virtual so that tests can make any of them fail. Each sets errno as the
// system does.
class FileCalls {
 public:
  virtual ~FileCalls() = default;
  virtual int create(const char* path);  // O_CREAT | O_EXCL for writing, the umask's mode
  virtual ssize_t write(int descriptor, const void* data, std::size_t bytes);
  virtual int set_mode(int descriptor, mode_t mode);
  virtual int sync(int descriptor);
  virtual int close(int descriptor);
  virtual int rename(const char* from, const char* to);
  virtual int link(const char* from, const char* to);  // a second name for one file
  virtual int sync_folder(const char* folder);
  virtual int lock(int descriptor);  // of the whole file; EWOULDBLOCK if another holds it
  virtual std::uint64_t free_bytes(const char* folder);  // for us; the maximum if unknown
};

void write_atomic(const std::string& path, std::span<const std::byte> bytes);
void write_atomic(const std::string& path, std::string_view text);
void write_atomic(const std::string& path, std::span<const std::byte> bytes, FileCalls& calls);

// Like write_atomic(), but before the rename the file is read back and compared with `bytes`
// (throws InputError if they differ), then `accept` is called, which may throw to prevent the
// rename.
void write_atomic_checked(const std::string& path, std::span<const std::byte> bytes,
                          const std::function<void()>& accept, FileCalls& calls);

// Like write_atomic(), but keeps the old file at `path` under the name `previous` (same folder),
// replacing the file of that name. This happens only once the new bytes are safe on the disk, and
// there is a file at `path` at every instant (except, on a file system without hard links, for a
// moment in which only `previous` exists). If `path` is a link to another file system, `previous`
// is a copy.
void write_rotating(const std::string& path, const std::string& previous,
                    std::span<const std::byte> bytes, FileCalls& calls);

// Removes the temporary files of `names` that dead processes left in `folder`; temporary files of
// live processes and all other files stay. The caller must hold the lock that keeps other processes
// out of the folder: a process on another machine that shares the folder cannot be told from a dead
// one.
void remove_stale_temporaries(const std::string& folder, std::span<const std::string> names);

}  // namespace rk
