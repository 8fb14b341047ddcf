#include "tools/train/settings/setting_table.h"

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/base/text_of.h"
#include "engine/system/read_file.h"
#include "tools/cli/cli.h"
#include "tools/cli/flags/other_names.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string_view>

namespace rk {
namespace {

using nlohmann::ordered_json;

constexpr const char* kNoSetting =
    "is neither a number, a text, a boolean nor a list of them; write name = value";

// The value as typed after a flag.
std::string typed(const ordered_json& value, const std::string& where) {
  const auto word = [&](const ordered_json& each) {
    if (!each.is_primitive()) fail<InputError>("{}: {}", where, kNoSetting);
    // TOML has infinity and NaN, which JSON would call null.
    if (each.is_number_float() && !std::isfinite(each.get<double>())) {
      return fmt::format("{}", each.get<double>());
    }
    return each.is_string() ? each.get<std::string>() : each.dump();
  };
  if (!value.is_array()) return word(value);
  std::string out;
  for (const auto& element : value) out += (out.empty() ? "" : ",") + word(element);
  return out;
}

// Throws InputError unless the value is of the kind of the setting's present one.
void require_kind(const ordered_json& value, const nlohmann::json& now, const std::string& where) {
  const auto require = [&](bool good, const char* kind) {
    if (!good) fail<InputError>("{} = {}: is no {}; write one", where, value.dump(), kind);
  };
  const auto number = [](const ordered_json& each) { return each.is_number(); };
  if (now.is_boolean() && !value.is_boolean()) {
    fail<InputError>("{} = {}: is neither true nor false; write one of them", where, value.dump());
  }
  if (now.is_number()) require(value.is_number(), "number");
  if (now.is_string()) require(value.is_string(), "text");
  if (now.is_array()) {
    require(number(value) || (value.is_array() && std::ranges::all_of(value, number)),
            "list of numbers");
  }
}

ordered_json from_toml(const toml::node& node, const std::string& where) {
  if (const auto* text = node.as_string()) {
    // It would end a path or a message early.
    if (text->get().find('\0') != std::string::npos) {
      fail<InputError>("{}: holds a character of value 0; leave it out", where);
    }
    return text->get();
  }
  if (const auto* integer = node.as_integer()) return integer->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* flag = node.as_boolean()) return flag->get();
  if (const auto* array = node.as_array()) {
    ordered_json out = ordered_json::array();
    for (const toml::node& element : *array) {
      if (element.is_array()) break;
      out.push_back(from_toml(element, where));
    }
    if (out.size() == array->size()) return out;
  }
  fail<InputError>("{}: {}", where, kNoSetting);
}

// The library makes a table for each part of a dotted name and walks these by recursion.
void refuse_long_names(const std::string& path, std::string_view text) {
  constexpr std::ptrdiff_t kMostDots = 100;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::string_view one = text.substr(0, text.find('\n'));
    const std::ptrdiff_t dots = std::count(one.begin(), one.end(), '.');
    if (dots > kMostDots) {
      fail<InputError>("{}: line {}: holds {} dots, {} are read; see recipes/ for examples", path,
                       line, dots, kMostDots);
    }
    text.remove_prefix(std::min(one.size() + 1, text.size()));
  }
}

}  // namespace

Flag SettingTable::add_switch(const std::string& name, bool& variable, const std::string& help) {
  remember(name, [&variable] { return nlohmann::json(variable); });
  return flags_->add_switch("--" + name, variable, help).group(group_);
}

void SettingTable::remember(const std::string& name, std::function<nlohmann::json()> value) {
  settings_.push_back({name, group_, std::move(value)});
}

void SettingTable::apply(const ordered_json& values, const std::string& source) {
  std::map<std::string, std::string> spellings;
  for (const auto& [key, value] : values.items()) {
    std::string name = key;
    std::replace(name.begin(), name.end(), '_', '-');
    const auto setting = std::ranges::find(settings_, name, &Setting::name);
    if (setting == settings_.end()) {
      std::vector<std::string> names;
      for (const Setting& each : settings_) names.push_back(each.name);
      if (flags_->has("--" + name)) {
        fail<InputError>("{}: '{}' is no setting of a run; give --{} on the command line", source,
                         key, name);
      }
      fail<InputError>("{}: no setting '{}'; {}", source, key, name_advice(name, names));
    }
    const auto [first, is_new] = spellings.emplace(name, key);
    if (!is_new) {
      fail<InputError>("{}: '{}' and '{}' are one setting; leave one out", source, first->second,
                       key);
    }
    const Flag flag = (*flags_)["--" + name];
    if (flag.given()) continue;
    const std::string text = typed(value, fmt::format("{}: {}", source, key));
    require_kind(value, setting->value(), fmt::format("{}: {}", source, key));
    if (text.empty() && !flag.takes_no_value()) continue;  // treat as absent
    try {
      flag.set(text);
    } catch (const UsageError& error) {
      fail<InputError>("{}: {} = {}: {}; see --help", source, key, text, error.what());
    }
  }
}

bool SettingTable::given(const std::string& name) const { return (*flags_)["--" + name].given(); }

std::set<std::string> SettingTable::all_given() const {
  std::set<std::string> names;
  for (const Setting& setting : settings_) {
    if (given(setting.name)) names.insert(setting.name);
  }
  return names;
}

ordered_json SettingTable::values() const {
  ordered_json out = ordered_json::object();
  for (const Setting& setting : settings_) out[setting.name] = setting.value();
  return out;
}

std::string SettingTable::toml() const {
  std::string out, group;
  for (const Setting& setting : settings_) {
    if (setting.group != group) {
      group = setting.group;
      out += fmt::format("{}# {}\n", out.empty() ? "" : "\n", group);
    }
    // JSON's texts, numbers, booleans and lists are TOML's as well, but for this character. (In
    // ASCII alone, a text would have surrogates, which TOML forbids.)
    std::string value =
        setting.value().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    for (std::size_t i = value.find('\x7F'); i != value.npos; i = value.find('\x7F', i)) {
      value.replace(i, 1, "\\u007F");
    }
    out += fmt::format("{} = {}\n", setting.name, value);
  }
  return out;
}

ordered_json read_recipe(const std::string& path) {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
  const std::vector<std::byte> bytes = read_file(path, kMaxBytes);
  const std::string_view text = text_of(bytes);
  refuse_long_names(path, text);
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& error) {
    const std::string what = one_line(error.description());
    // The "control character" is the end of the line inside an unclosed text.
    const bool open = what.find("control character") != std::string::npos;
    fail<InputError>("{}: line {}: {}; texts stand in quotes, see recipes/ for examples", path,
                     error.source().begin.line,
                     open ? "a text has no second quotation mark" : what);
  }
  // The library sorts by name; messages should follow the file.
  std::vector<std::pair<toml::source_position, std::string>> order;
  for (const auto& [key, node] : table) {
    order.emplace_back(node.source().begin, std::string(key.str()));
  }
  std::sort(order.begin(), order.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  ordered_json out = ordered_json::object();
  for (const auto& [position, key] : order) {
    out[key] = from_toml(*table.get(key), fmt::format("{}: line {}: {}", path, position.line, key));
  }
  return out;
}

}  // namespace rk
