#include "retrieval/files/text_column.h"

#include "engine/base/error.h"
#include "engine/base/lower_case.h"
#include "engine/base/number_in.h"
#include "engine/base/printable.h"
#include "engine/base/text_of.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace rk {
namespace {

constexpr std::size_t kMaxField = std::size_t{1} << 20;
constexpr std::size_t kMaxFields = 10'000;

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

// The separator that the first line that is not empty has most of, outside of quotes.
char separator_of(std::string_view text) {
  std::int64_t commas = 0, semicolons = 0, tabs = 0;
  bool blank = true, quoted = false, may_open = true;  // a quote opens a field at its start alone
  for (const char c : text) {
    if (quoted) {
      quoted = c != '"';
      may_open = !quoted;  // a doubled quote does not end its field
      continue;
    }
    if (c == '\r' || c == '\n') {
      if (!blank) break;
      may_open = true;
      continue;
    }
    quoted = may_open && c == '"';
    blank = blank && c == ' ';
    commas += c == ',' ? 1 : 0;
    semicolons += c == ';' ? 1 : 0;
    tabs += c == '\t' ? 1 : 0;
    may_open = c == ',' || c == ';' || c == '\t';
  }
  if (tabs > std::max(commas, semicolons)) return '\t';
  return semicolons > commas ? ';' : ',';
}

class Table {
 public:
  Table(std::string_view text, std::string path, std::string noun)
      : rest_(text), path_(std::move(path)), noun_(std::move(noun)) {
    if (rest_.starts_with("\xff\xfe") || rest_.starts_with("\xfe\xff")) {
      fail<InputError>("{}: is UTF-16; save it as UTF-8", path_);
    }
    if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);
    if (rest_.substr(0, 4096).find('\0') != std::string_view::npos) {
      fail<InputError>(
          "{}: is no text and no array that is known; give CSV, .npy, .npz, "
          "safetensors or HDF5",
          path_);
    }
    separator_ = separator_of(rest_);
  }

  // Reads the next line's fields; returns false at the end. Skips empty lines, but not between the
  // rows of a single column: there a value may be missing.
  bool next(std::vector<std::string>& fields) {
    std::int64_t empty = 0;
    for (;;) {
      if (rest_.empty()) return false;
      ++line_;
      fields.clear();
      for (bool more = true; more;) {
        if (fields.size() == kMaxFields) {
          fail<InputError>("{}: line {} has more than {} columns; give a table of {}s", path_,
                           line_, kMaxFields, noun_);
        }
        more = field(fields);
      }
      if (fields.size() == 1 && fields.front().empty()) {
        empty = line_;
        continue;
      }
      if (empty > 0 && began_ && fields.size() == 1) {
        fail<InputError>("{}: line {} is empty; give one {} a row", path_, empty, noun_);
      }
      began_ = true;
      return true;
    }
  }
  std::int64_t line() const { return line_; }

 private:
  // Reads one field; returns whether another follows in this line.
  bool field(std::vector<std::string>& fields) {
    std::string out;
    std::size_t at = 0;
    if (rest_.starts_with('"')) {
      at = 1;
      for (;;) {
        const std::size_t quote = rest_.find('"', at);
        if (quote == std::string_view::npos || quote > kMaxField) {
          fail<InputError>("{}: line {}: a quote without an end; close it", path_, line_);
        }
        out += rest_.substr(at, quote - at);
        at = quote + 1;
        if (at >= rest_.size() || rest_[at] != '"') break;
        out += '"';
        ++at;
      }
      const std::string_view within = rest_.substr(0, at);
      lines_within_ += std::count(within.begin(), within.end(), '\n');
    }
    const char ends[] = {separator_, '\r', '\n'};
    std::size_t end = rest_.find_first_of(std::string_view(ends, 3), at);
    if (end == std::string_view::npos) end = rest_.size();
    if (end - at > kMaxField) {
      fail<InputError>("{}: line {} holds {} characters without a separator; give a table of {}s",
                       path_, line_, end - at, noun_);
    }
    if (at == 0) {
      out = trimmed(rest_.substr(0, end));
    } else if (!trimmed(rest_.substr(at, end - at)).empty()) {
      fail<InputError>("{}: line {}: text behind a closing quote; double quotes within a field",
                       path_, line_);
    }
    fields.push_back(std::move(out));
    const bool more = end < rest_.size() && rest_[end] == separator_;
    const std::size_t step = more || end == rest_.size()      ? 1
                             : rest_.substr(end, 2) == "\r\n" ? 2
                                                              : 1;
    rest_.remove_prefix(std::min(rest_.size(), end + step));
    // A separator at the very end is followed by an empty field.
    if (more && rest_.empty()) {
      fields.emplace_back();
      return false;
    }
    if (!more) line_ += std::exchange(lines_within_, 0);
    return more;
  }

  std::string_view rest_;
  std::string path_, noun_;
  char separator_ = ',';
  std::int64_t line_ = 0, lines_within_ = 0;
  bool began_ = false;  // a line that is not empty was read
};

// The column to read, found in the first line, and whether that line is a header.
struct Place {
  std::size_t column = 0;
  bool heads = false;
};

void require_one(std::ptrdiff_t count, const std::string& name, const std::string& path) {
  if (count == 1) return;
  fail<InputError>("{}: {} columns are called {}; rename all but one", path, count,
                   in_quotes(name));
}

Place place_of(const std::vector<std::string>& first, const std::string& wanted,
               std::span<const std::string> usual, const std::string& path) {
  const auto at = [&](auto&& is) -> std::size_t {
    return static_cast<std::size_t>(std::find_if(first.begin(), first.end(), is) - first.begin());
  };
  if (!wanted.empty()) {
    const std::size_t column = at([&](const std::string& head) { return head == wanted; });
    if (column == first.size()) {
      fail<InputError>("{}: no column {}; its first line has {}", path, in_quotes(wanted),
                       in_quotes(fmt::format("{}", fmt::join(first, ", "))));
    }
    require_one(std::ranges::count(first, wanted), wanted, path);
    return {column, true};
  }
  for (const std::string& name : usual) {
    const auto is_called = [&](const std::string& head) { return lower_case(head) == name; };
    const std::size_t column = at(is_called);
    if (column == first.size()) continue;
    require_one(std::ranges::count_if(first, is_called), name, path);
    return {column, true};
  }
  if (first.size() == 1) return {0, false};
  fail<InputError>("{}: has {} columns ({}) and none is called {}; say which, as FILE:COLUMN", path,
                   first.size(), in_quotes(fmt::format("{}", fmt::join(first, ", "))),
                   usual.front());
}

// What programs write where a number is missing.
bool is_missing(const std::string& value) {
  const std::string text = lower_case(value);
  return std::ranges::any_of(std::array{"nan", "na", "n/a", "null", "none"},
                             [&](const char* missing) { return text == missing; });
}

// A missing number is not a class of its own, as the same word is among names. `lines` holds where
// each value stands first.
void require_no_missing(const std::vector<std::string>& values,
                        const std::vector<std::int64_t>& lines, const std::string& shown,
                        const std::string& noun) {
  const auto is_number = [](const std::string& text) {
    return number_in<double>(text).has_value();
  };
  const auto missing = std::ranges::find_if(values, is_missing);
  if (missing == values.end()) return;
  const auto numbers = std::ranges::count_if(values, is_number);
  if (numbers == 0 || numbers + std::ranges::count_if(values, is_missing) < std::ssize(values)) {
    return;
  }
  fail<InputError>("{}: line {} has {} among numbers, which is no {}; give one {} a row", shown,
                   lines[static_cast<std::size_t>(missing - values.begin())], in_quotes(*missing),
                   noun, noun);
}

TextColumn read_column(Table table, const Place& place, std::int64_t expected_rows,
                       const std::string& shown, const std::string& noun) {
  std::vector<std::string> fields;
  table.next(fields);
  const std::size_t width = fields.size();
  TextColumn out;
  std::vector<std::int64_t> lines;  // the first of each value
  std::unordered_map<std::string, std::int64_t> known;
  const auto add = [&](const std::string& value) {
    if (value.empty()) {
      fail<InputError>("{}: line {} has no {}; give one {} a row", shown, table.line(), noun, noun);
    }
    const auto [found, fresh] = known.emplace(value, static_cast<std::int64_t>(out.values.size()));
    if (fresh) {
      out.values.push_back(value);
      lines.push_back(table.line());
    }
    out.rows.push_back(found->second);
  };
  if (place.heads) {
    out.name = fields[place.column];
  } else {
    add(fields[place.column]);
  }
  while (static_cast<std::int64_t>(out.rows.size()) < expected_rows + 2 && table.next(fields)) {
    if (fields.size() != width) {
      fail<InputError>("{}: line {} has {} columns, the first has {}; make them equal", shown,
                       table.line(), fields.size(), width);
    }
    add(fields[place.column]);
  }
  out.more = std::ssize(out.rows) == expected_rows + 2 && table.next(fields);
  const auto is_whole = [](const std::string& text) {
    return number_in<std::int64_t>(text).has_value();
  };
  // A word above numbers is the column's header.
  const bool words_first = !place.heads && out.values.size() > 1 && !is_whole(out.values[0]) &&
                           std::all_of(out.values.begin() + 1, out.values.end(), is_whole);
  if (words_first && std::count(out.rows.begin(), out.rows.end(), 0) == 1) {
    out.name = out.values.front();
    out.values.erase(out.values.begin());
    lines.erase(lines.begin());
    out.rows.erase(out.rows.begin());
    for (std::int64_t& row : out.rows) --row;
  }
  require_no_missing(out.values, lines, shown, noun);
  return out;
}

}  // namespace

TextColumn read_text_column(std::span<const std::byte> bytes, const std::string& wanted,
                            const RowValue& value, std::int64_t expected_rows,
                            const std::string& path) {
  const std::string shown = printable(path);
  const std::string& noun = value.noun;
  const Table table(text_of(bytes), shown, noun);
  std::vector<std::string> first;
  if (!Table(table).next(first)) fail<InputError>("{}: is empty; give one {} a row", shown, noun);
  const Place place = place_of(first, wanted, value.usual, shown);
  TextColumn column = read_column(table, place, expected_rows, shown, noun);
  const bool is_class = place.heads && wanted.empty() && first.size() == 1 &&
                        std::ssize(column.rows) == expected_rows - 1 &&
                        std::ranges::count(column.values, column.name) > 0;
  if (!is_class) return column;
  return read_column(table, {place.column, false}, expected_rows, shown, noun);
}

}  // namespace rk
