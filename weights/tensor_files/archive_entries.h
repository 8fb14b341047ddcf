// What a zip or tar archive in memory holds, through libarchive. Nothing is written anywhere, and
// names are names, never paths.
//
// Refused: encrypted entries, two of one name, entries that lie over each other, more than 200,000
// entries, a checksum that differs, archives that were cut off, entries longer than they say, and
// contents that take, with the archive itself, more than memory_for_file(). Entries
// that are stored as they are are views of the archive and take nothing.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>

namespace rk {

enum class ArchiveKind { kZip, kTar };

struct ArchiveEntry {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;  // null: a view of the archive
};

// By name. `name` is that of the archive, for messages. InputError.
std::map<std::string, ArchiveEntry> archive_entries(std::span<const std::byte> archive,
                                                    ArchiveKind kind, bool check_crc,
                                                    const std::string& name);

}  // namespace rk
