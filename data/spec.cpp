#include "data/spec.h"

#include "engine/base/error.h"
#include "engine/base/number_in.h"

#include <algorithm>
#include <optional>

namespace rk {
namespace {

bool is_key_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

// The length of `key=` at the front of `text`; 0 if there is none.
std::size_t key_length(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && is_key_character(text[n])) ++n;
  return n > 0 && n < text.size() && text[n] == '=' ? n + 1 : 0;
}

// The position of the first comma that begins an option; text.size() if there is none.
std::size_t next_option(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ',' && key_length(text.substr(i + 1)) > 0) return i;
  }
  return text.size();
}

}  // namespace

std::map<std::string, std::string> parse_key_values(std::string_view text, std::string_view what) {
  std::map<std::string, std::string> values;
  while (!text.empty()) {
    const std::size_t equals = key_length(text);
    if (equals == 0)
      fail<UsageError>("{}: '{}' is no key=value; write key=value,key=value", what, text);
    std::string key(text.substr(0, equals - 1));
    std::replace(key.begin(), key.end(), '-', '_');
    text.remove_prefix(equals);
    const std::size_t end = next_option(text);
    if (!values.emplace(key, text.substr(0, end)).second) {
      fail<UsageError>("{}: {} is given twice; keep one", what, key);
    }
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return values;
}

DataSpec parse_data_spec(std::string_view text, bool path_first) {
  DataSpec spec;
  const std::size_t colon = text.find(':');
  spec.kind = text.substr(0, colon);
  if (colon == std::string_view::npos) return spec;
  std::string_view rest = text.substr(colon + 1);
  if (path_first || key_length(rest) == 0) {
    const std::size_t end = next_option(rest);
    spec.path = rest.substr(0, end);
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
  spec.options = parse_key_values(rest, spec.kind);
  return spec;
}

std::string DataSpec::text() const {
  std::string out = kind;
  char separator = ':';
  if (!path.empty()) {
    out += separator + path;
    separator = ',';
  }
  for (const auto& [key, value] : options) {
    out += separator + key + "=" + value;
    separator = ',';
  }
  return out;
}

std::string DataSpec::get(const std::string& key, const std::string& otherwise) const {
  const auto found = options.find(key);
  return found == options.end() ? otherwise : found->second;
}

double DataSpec::number(const std::string& key, double otherwise, double low, double high) const {
  const auto found = options.find(key);
  if (found == options.end()) return otherwise;
  const std::optional<double> value = number_in<double>(found->second);
  if (!value || *value < low || *value > high) {
    fail<UsageError>("{}: {}={} is no number from {} to {}; correct it", kind, key, found->second,
                     low, high);
  }
  return *value;
}

std::int64_t DataSpec::integer(const std::string& key, std::int64_t otherwise, std::int64_t low,
                               std::int64_t high) const {
  const auto found = options.find(key);
  if (found == options.end()) return otherwise;
  const std::optional<std::int64_t> value = number_in<std::int64_t>(found->second);
  if (!value || *value < low || *value > high) {
    fail<UsageError>("{}: {}={} is no whole number from {} to {}; correct it", kind, key,
                     found->second, low, high);
  }
  return *value;
}

std::vector<std::string> DataSpec::list(const std::string& key) const {
  std::vector<std::string> names;
  const auto found = options.find(key);
  if (found == options.end()) return names;
  std::string_view text = found->second;
  for (;;) {
    const std::size_t plus = text.find('+');
    if (plus == 0 || text.empty()) {
      fail<UsageError>("{}: {}={} has an empty name; write a+b+c", kind, key, found->second);
    }
    names.emplace_back(text.substr(0, plus));
    if (plus == std::string_view::npos) return names;
    text.remove_prefix(plus + 1);
  }
}

}  // namespace rk
