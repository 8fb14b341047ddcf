// One column of a table as text: CSV separated by commas, semicolons or tabs (whichever the first
// line that is not empty has most of outside of quotes), or one value per line. Fields may be in
// double quotes, with quotes inside doubled (RFC 4180); a byte order mark and CRLF are skipped.
// UTF-8 is passed on unchanged.
//
// Errors are InputErrors "<file>: <what>; <what to do>" that name the line.
#pragma once

#include "retrieval/files/row_value.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rk {

struct TextColumn {
  std::string name;                 // of the column; empty if the table has no header
  std::vector<std::string> values;  // the distinct values, in order of first appearance
  std::vector<std::int64_t> rows;   // for each row, its position in `values`
  bool more = false;                // the table has more rows, which were not read
};

// Chooses the column with header `wanted`; if that is empty, the column whose header is one of the
// value's usual names, or the only column. Without `wanted` the first line counts as a header if
// one of its fields is a usual name, or if it is a word above numbers; but not if there is one
// column of `expected_rows` lines and its first word occurs again below. Stops reading two rows
// after `expected_rows`, so that a table that is too long costs no memory.
TextColumn read_text_column(std::span<const std::byte> bytes, const std::string& wanted,
                            const RowValue& value, std::int64_t expected_rows,
                            const std::string& path);

}  // namespace rk
