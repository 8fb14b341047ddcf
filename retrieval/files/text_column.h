// One column of a table as text: CSV by commas, semicolons or tabs (whichever the first line has
// most of), or a value a line. Fields may stand in double quotes, a quote within doubled (RFC
// 4180); a byte order mark and CRLF are stepped over. UTF-8 is passed on as it is.
//
// Errors are InputErrors "<file>: <what>; <what to do>" that name the line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rk {

struct TextColumn {
  std::string name;                 // of the column; empty: the table has no heads
  std::vector<std::string> values;  // each once, in the order in which they come
  std::vector<std::int64_t> rows;   // positions in `values`, a row each
  bool more = false;                // the table has more rows, which were not read
};

// `wanted`: by its head; empty: the one whose head is among `usual` (in small letters), or the only
// one there is. Without `wanted` the first line is taken for heads where one of them is among
// `usual`, or where it is a word above numbers; but for the only column of `expected_rows` lines,
// whose first word comes again below. Reading ends two rows after `expected_rows`, so that a table
// too long costs no memory.
TextColumn read_text_column(std::span<const std::byte> bytes, const std::string& wanted,
                            std::span<const std::string> usual, std::int64_t expected_rows,
                            const std::string& path);

// All of `text` as a number within int64.
std::optional<std::int64_t> whole_number(const std::string& text);

}  // namespace rk
