#include "retrieval/files/mapped_file.h"

#include "engine/base/printable.h"
#include "engine/base/text_of.h"
#include "engine/system/read_file.h"
#include "weights/tensor_files/file_kind.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>

namespace rk {
namespace {

// A mapped file as the signal handler sees it: atomics that it may read at any time.
struct Slot {
  std::atomic<bool> taken = false;
  std::atomic<std::uintptr_t> begin = 0, end = 0;  // equal: nothing is mapped
  std::atomic<bool> damaged = false;
  std::string path;  // never read by the handler, nor are these
  int descriptor = -1;
  FileIdentity identity;
};

std::array<Slot, 16> slots;
std::atomic<std::uintptr_t> page_bytes = 0;
struct sigaction before;

std::uintptr_t address_of(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

// Maps a page of zeros in place of a lost one; for any other cause restores the previous handler.
void on_bus_error(int /*signal*/, siginfo_t* info, void* /*context*/) {
  const int error = errno;
  const std::uintptr_t at = address_of(info->si_addr);
  for (Slot& slot : slots) {
    if (at < slot.begin || at >= slot.end) continue;
    const std::uintptr_t page = page_bytes;
    void* from = static_cast<char*>(info->si_addr) - at % page;
    slot.damaged = true;
    if (::mmap(from, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == from) {
      errno = error;
      return;
    }
  }
  ::sigaction(SIGBUS, &before, nullptr);
  errno = error;
}

void install_handler() {
  static const bool installed = [] {
    page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    ::sigemptyset(&action.sa_mask);
    return ::sigaction(SIGBUS, &action, &before) == 0;
  }();
  if (!installed) throw SystemError("cannot handle SIGBUS");
}

int take_slot(const std::string& path) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].taken.exchange(true)) continue;
    slots[i].path = path;
    slots[i].damaged = false;
    return static_cast<int>(i);
  }
  fail<InputError>("{}: more than {} files at a time; give fewer", printable(path), slots.size());
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  // Throws a clear message if the path is not a regular file.
  const RegularFile checked(path, std::numeric_limits<std::int64_t>::max());
  if (checked.bytes() == 0) return;
  install_handler();
  slot_ = take_slot(path);
  const auto size = static_cast<std::size_t>(checked.bytes());
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  void* at =
      descriptor < 0 ? MAP_FAILED : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const int error = errno;
  Slot& slot = slots[static_cast<std::size_t>(slot_)];
  if (at == MAP_FAILED) {
    if (descriptor >= 0) ::close(descriptor);
    slot.taken = false;
    throw SystemError(fmt::format("{}: cannot be mapped ({}); {}", printable(path),
                                  std::strerror(error),
                                  error == ENOMEM ? "raise the limit of address space (ulimit -v)"
                                                  : "check the disk or the network mount"));
  }
  bytes_ = {static_cast<const std::byte*>(at), size};
  slot.descriptor = descriptor;
  slot.identity = checked.identity();
  slot.begin = address_of(at);
  slot.end = address_of(at) + size;
}

MappedFile::~MappedFile() {
  if (slot_ < 0) return;
  Slot& slot = slots[static_cast<std::size_t>(slot_)];
  slot.end = 0;
  slot.begin = 0;
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  ::close(slot.descriptor);
  slot.taken = false;
}

void check_mapped_files() {
  for (const Slot& slot : slots) {
    if (!slot.taken) continue;
    struct stat status {};
    const bool changed =
        ::fstat(slot.descriptor, &status) != 0 || identity_of(status) != slot.identity;
    if (!slot.damaged && !changed) continue;
    fail<InputError>(
        "{}: was written to while it was read, or its disk failed; copy it again and let nobody "
        "write to it meanwhile",
        printable(slot.path));
  }
}

bool holds_hdf5(const std::string& path) {
  const MappedFile file(path);
  return is_hdf5(text_of(file.bytes()));
}

}  // namespace rk
