#include "weights/foreign/archive_entries.h"

#include "engine/error.h"
#include "weights/printable.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace rk {
namespace {

constexpr std::size_t kMaxEntries = 200'000;
constexpr std::uint64_t kFreeBytes = std::uint64_t{1} << 30;

struct FreeArchive {
  void operator()(archive* a) const { archive_read_free(a); }
};

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, ArchiveKind kind, bool check_crc,
         const std::string& name)
      : bytes_(bytes), name_(name), archive_(archive_read_new()) {
    if (!archive_) throw std::bad_alloc();
    // The reader of streams would take what stands in front of entries for the truth.
    if (kind == ArchiveKind::kZip) {
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
      if (entries.size() == kMaxEntries) {
        refuse(
            fmt::format("holds more than {} entries; no file that is read here does", kMaxEntries));
      }
      if (!entries.emplace(entry, content(entry)).second) {
        refuse("holds " + in_quotes(entry) + " twice; save it again");
      }
    }
    check_overlap(entries);
    return entries;
  }

 private:
  // The bytes of the entry that was come to.
  ArchiveEntry content(const std::string& entry) {
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
      total_ += size;
      if (total_ > std::max(2 * bytes_.size(), kFreeBytes)) {
        refuse("unpacks to more than twice its size and 1 GiB; no file that is read here does");
      }
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
      if (viewed) copy->assign(view.begin(), view.end());
      viewed = false;
      copy->insert(copy->end(), piece.begin(), piece.end());
    }
    if (viewed) return {view, nullptr};
    return {*copy, copy};
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
          "{}: {}the checksum differs: it is damaged, download it again (or it was written without "
          "checksums: --no-crc)",
          printable(name_), where);
    }
    fail<InputError>("{}: {}{}; it is damaged or was cut off, download it again", printable(name_),
                     where, printable(reason));
  }

  std::span<const std::byte> bytes_;
  std::string name_;
  std::unique_ptr<archive, FreeArchive> archive_;
  std::uint64_t total_ = 0;
};

}  // namespace

std::map<std::string, ArchiveEntry> archive_entries(std::span<const std::byte> archive,
                                                    ArchiveKind kind, bool check_crc,
                                                    const std::string& name) {
  return Reader(archive, kind, check_crc, name).read();
}

}  // namespace rk
