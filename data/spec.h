// `--data SPEC`: which images to read. One grammar for every kind:
//
//   kind[:path][,key=value]...      folder:photos,val_classes=0.2
//   glyphs[:key=value[,key=value]...]
//
// An option begins at a comma followed by a key (letters, digits, '_' or '-') and '='; every other
// comma belongs to the path or value before it, so paths may contain commas, and values anything
// but ",key=". In keys '-' means '_'. The path of a folder comes first, even if it looks like an
// option (folder:a=b). Lists are written a+b+c:
// folder:omniglot,categories=Japanese_(katakana)+Sanskrit+Tagalog. Unknown kinds, unknown keys,
// repeated keys and values of the wrong form are UsageErrors.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rk {

struct DataSpec {
  std::string kind;
  std::string path;  // empty for a kind without files
  std::map<std::string, std::string> options;

  std::string text() const;  // in the grammar above, options in alphabetical order
  bool has(const std::string& key) const { return options.contains(key); }
  std::string get(const std::string& key, const std::string& otherwise) const;
  double number(const std::string& key, double otherwise, double low, double high) const;
  std::int64_t integer(const std::string& key, std::int64_t otherwise, std::int64_t low,
                       std::int64_t high) const;
  std::vector<std::string> list(const std::string& key) const;  // split at '+'
};

// A key that sets a member of Options to a number from low to high. Whoever reads, lists or writes
// such keys goes over one table of them.
template <class Options> struct NumberKey {
  const char* name;
  double Options::*value;
  double low, high;
};

// Checks only the form. path_first: what follows the kind is a path, even if it looks like an
// option. open_dataset.h knows the kinds: which have a path (read_data_spec()), and their keys.
DataSpec parse_data_spec(std::string_view text, bool path_first);

// Parses "k=4,fill=white" alone, for other flags with the same grammar; `what` begins the messages.
std::map<std::string, std::string> parse_key_values(std::string_view text, std::string_view what);

}  // namespace rk
