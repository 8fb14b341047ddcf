#include "weights/tensor_files/archive_entries.h"

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/base/text_of.h"
#include "weights/hdf5/file_memory.h"

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace rk {
namespace {

constexpr std::size_t kMaxEntries = 200'000;
// The signatures of an entry in the directory of a zip archive, and of the directory's end, which
// takes 22 bytes and a comment of less than 64 KiB.
constexpr std::string_view kDirectoryEntry = "PK\x01\x02", kDirectoryEnd = "PK\x05\x06";
constexpr std::size_t kMostDirectoryEnd = (std::size_t{64} << 10) + 22;

struct FreeArchive {
  void operator()(archive* a) const { archive_read_free(a); }
};

// Names in UTF-8 for this thread while it lives: the library converts names into the locale's
// characters and drops those that it cannot. Without such a locale nothing changes.
class Utf8Names {
 public:
  Utf8Names()
      : utf8_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)),
        before_(utf8_ != nullptr ? uselocale(utf8_) : nullptr) {}
  ~Utf8Names() {
    if (utf8_ == nullptr) return;
    uselocale(before_);
    freelocale(utf8_);
  }
  Utf8Names(const Utf8Names&) = delete;
  Utf8Names& operator=(const Utf8Names&) = delete;

 private:
  locale_t utf8_, before_;
};

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, ArchiveKind kind, bool check_crc,
         const std::string& name)
      : bytes_(bytes), name_(name), archive_(archive_read_new()) {
    if (!archive_) throw std::bad_alloc();
    // The seekable reader uses the directory; the streaming reader would trust the entries' own
    // headers.
    if (kind == ArchiveKind::kZip) {
      check_end();
      count_entries();
      archive_read_support_format_zip_seekable(archive_.get());
      if (!check_crc) archive_read_set_options(archive_.get(), "zip:ignorecrc32");
    } else {
      archive_read_support_format_tar(archive_.get());
    }
    if (archive_read_open_memory(archive_.get(), bytes.data(), bytes.size()) != ARCHIVE_OK) {
      damaged();
    }
  }

  std::map<std::string, ArchiveEntry> read() {
    std::map<std::string, ArchiveEntry> entries;
    for (;;) {
      archive_entry* header = nullptr;
      const int result = archive_read_next_header(archive_.get(), &header);
      if (result == ARCHIVE_EOF) break;
      if (result != ARCHIVE_OK && result != ARCHIVE_WARN) damaged();
      if (archive_entry_is_encrypted(header) != 0)
        refuse("is encrypted; save it without a password");
      if (archive_entry_filetype(header) != AE_IFREG) continue;  // folders
      const char* path = archive_entry_pathname_utf8(header);
      if (path == nullptr) path = archive_entry_pathname(header);
      if (path == nullptr) refuse("holds an entry without a name; download it again");
      const std::string entry(path);
      if (entries.size() == kMaxEntries) too_many();
      const std::uint64_t size =
          archive_entry_size_is_set(header) != 0
              ? static_cast<std::uint64_t>(std::max<la_int64_t>(archive_entry_size(header), 0))
              : 0;
      if (!entries.emplace(entry, content(entry, size)).second) {
        refuse("holds " + in_quotes(entry) + " twice; save it again");
      }
    }
    check_overlap(entries);
    return entries;
  }

 private:
  [[noreturn]] void too_many() const {
    refuse(fmt::format("holds more than {} entries; no file that is read here does", kMaxEntries));
  }

  // The directory is the last that is written, so that a download that was cut off has none.
  void check_end() const {
    const std::string_view text = text_of(bytes_);
    const std::size_t end = text.size() - std::min(text.size(), kMostDirectoryEnd);
    if (text.find(kDirectoryEnd, end) != text.npos) return;
    refuse(
        fmt::format("ends after {} bytes without the directory of a zip archive: it was cut "
                    "off; download it again",
                    text.size()));
  }

  // Checked in advance, because the library loads the whole directory of a zip archive, several
  // hundred bytes per entry, before it returns the first entry.
  void count_entries() const {
    const std::string_view text = text_of(bytes_);
    const char *at = text.data(), *end = text.data() + text.size();
    for (std::size_t count = 0;; ++count) {
      at = static_cast<const char*>(::memmem(at, static_cast<std::size_t>(end - at),
                                             kDirectoryEntry.data(), kDirectoryEntry.size()));
      if (at == nullptr) return;
      if (count == kMaxEntries) too_many();
      at += kDirectoryEntry.size();
    }
  }

  // The bytes of the current entry.
  ArchiveEntry content(const std::string& entry, std::uint64_t size_said) {
    auto copy = std::make_shared<std::vector<std::byte>>();
    std::span<const std::byte> view;
    bool viewed = true;
    for (;;) {
      const void* block = nullptr;
      std::size_t size = 0;
      la_int64_t offset = 0;
      const int result = archive_read_data_block(archive_.get(), &block, &size, &offset);
      if (result == ARCHIVE_EOF) break;
      if (result != ARCHIVE_OK) damaged(in_quotes(entry) + ": ");
      if (size == 0) continue;  // behind data whose length follows them, as in PyTorch's archives
      const auto at = static_cast<std::uint64_t>(offset);
      if (at != (viewed ? view.size() : copy->size())) {
        refuse(in_quotes(entry) + " has holes; save it again");
      }
      const std::span<const std::byte> piece(static_cast<const std::byte*>(block), size);
      if (viewed && lies_in_archive(piece) &&
          (view.empty() || view.data() + view.size() == block)) {
        view = {view.empty() ? piece.data() : view.data(), view.size() + size};
        continue;
      }
      if (viewed) {
        hold(size_said);
        copy->reserve(size_said);
        copy->assign(view.begin(), view.end());
      }
      viewed = false;
      if (size > size_said - std::min<std::uint64_t>(size_said, copy->size())) {
        refuse(in_quotes(entry) + " is longer than it says; download it again");
      }
      copy->insert(copy->end(), piece.begin(), piece.end());
    }
    if (viewed) return {view, nullptr};
    return {*copy, copy};
  }

  void hold(std::uint64_t bytes) {
    held_ += bytes;
    if (held_ > memory_for_file(bytes_.size()) - bytes_.size() || held_ < bytes) {
      refuse(
          "takes, with what it unpacks to, more than twice its size and 900 MB; no file that is "
          "read here does");
    }
  }

  bool lies_in_archive(std::span<const std::byte> piece) const {
    return piece.data() >= bytes_.data() &&
           piece.data() + piece.size() <= bytes_.data() + bytes_.size();
  }

  void check_overlap(const std::map<std::string, ArchiveEntry>& entries) const {
    std::vector<std::span<const std::byte>> views;
    for (const auto& [path, entry] : entries) {
      if (!entry.owner && !entry.bytes.empty()) views.push_back(entry.bytes);
    }
    std::sort(views.begin(), views.end(),
              [](const auto& a, const auto& b) { return a.data() < b.data(); });
    for (std::size_t i = 1; i < views.size(); ++i) {
      if (views[i - 1].data() + views[i - 1].size() > views[i].data()) {
        refuse("holds entries that lie over each other; download it again");
      }
    }
  }

  [[noreturn]] void refuse(const std::string& what) const {
    fail<InputError>("{}: {}", printable(name_), what);
  }
  [[noreturn]] void damaged(const std::string& where = "") const {
    const char* said = archive_error_string(archive_.get());
    const std::string reason = said == nullptr ? "cannot be read" : said;
    if (reason.find("CRC") != std::string::npos) {
      fail<InputError>(
          "{}: {}the checksum differs: it is damaged, download it again (if it is weights written "
          "without checksums, `convert {} OUT --no-crc` takes it)",
          printable(name_), where, printable(name_));
    }
    fail<InputError>("{}: {}{}; it is damaged or was cut off, download it again", printable(name_),
                     where, printable(reason));
  }

  std::span<const std::byte> bytes_;
  std::string name_;
  std::unique_ptr<archive, FreeArchive> archive_;
  std::uint64_t held_ = 0;  // by entries that are not views
};

}  // namespace

std::map<std::string, ArchiveEntry> archive_entries(std::span<const std::byte> archive,
                                                    ArchiveKind kind, bool check_crc,
                                                    const std::string& name) {
  const Utf8Names names;
  return Reader(archive, kind, check_crc, name).read();
}

}  // namespace rk
