// Reads the entries of a zip or tar archive in memory through libarchive. Nothing is written to
// disk, and entry names are never used as paths.
//
// Refused: encrypted entries, duplicate names, overlapping entries, more than 200,000 entries,
// wrong checksums, truncated archives, entries longer than stated, and contents that together with
// the archive take more than memory_for_file(). Uncompressed entries are views of the archive and
// take no memory.
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

// Returns the entries by name. `name` is the archive's, for messages. Throws InputError.
std::map<std::string, ArchiveEntry> archive_entries(std::span<const std::byte> archive,
                                                    ArchiveKind kind, bool check_crc,
                                                    const std::string& name);

}  // namespace rk
