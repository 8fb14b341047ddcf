// A file that is replaced whole or not at all, whenever the program or the machine stops.
//
// The bytes go to `.<name>.tmp.<pid>` in the same folder (created anew), are synced to the disk,
// and the file takes its place by rename; then the folder is synced. Until the rename the old file
// is as it was. A failed write, sync, close or rename removes the temporary file and is an
// InputError that names the path and the system's reason; a failed sync is never tried again on the
// same file, since the system may have dropped the pages. A file that is replaced keeps its mode; a
// symbolic link is followed, also to a file that is not there yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace rk {

// The system calls used, so that tests can make any of them fail. Each sets errno as the system
// does.
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
  virtual int lock(int descriptor);  // of the whole file; EWOULDBLOCK where another has it
  virtual std::uint64_t free_bytes(const char* folder);  // for us; the largest number if not known
};

void write_atomic(const std::string& path, std::span<const std::byte> bytes);
void write_atomic(const std::string& path, std::string_view text);
void write_atomic(const std::string& path, std::span<const std::byte> bytes, FileCalls& calls);

// The same; before the file takes its place it is read again and compared with `bytes`, and
// `accept` is called, which throws where it must not take it. A difference is an InputError.
void write_atomic_checked(const std::string& path, std::span<const std::byte> bytes,
                          const std::function<void()>& accept, FileCalls& calls);

// The same as write_atomic, and the file that was at `path` stays under the name `previous` (same
// folder), replacing what was there. That happens only once the new bytes are safe on the disk, and
// at no instant is there no file at `path` (on a file system without hard links: `previous` is
// there instead, for that instant). Where `path` is a link to another file system, `previous` is a
// copy.
void write_rotating(const std::string& path, const std::string& previous,
                    std::span<const std::byte> bytes, FileCalls& calls);

// Removes the temporary files of `names` that dead processes left in `folder`; those of living ones
// stay, and so does every other file. Call it only while holding whatever keeps others out of the
// folder: a process of another machine that shares the folder cannot be told from a dead one.
void remove_stale_temporaries(const std::string& folder, std::span<const std::string> names);

}  // namespace rk
