// A program's settings by name, so that one list serves its flags, recipe files and the record of a
// run.
//
// A setting can come from three sources, the first of which wins: the command line, a recipe
// (TOML), the run that is resumed. apply() sets only what no source has set yet, through the flag's
// own checks. Names in files may be written with '-' or '_'. An unknown name throws InputError,
// which suggests the nearest name.
#pragma once

#include "tools/cli/flags/flags.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace rk {

class SettingTable {
 public:
  void attach(const Flags& flags) { flags_ = flags; }

  // Adds --name in the current group; the variable's value is the default.
  template <class T> Flag add(const std::string& name, T& variable, const std::string& help) {
    remember(name, [&variable] { return nlohmann::json(variable); });
    return flags_->add("--" + name, variable, help).group(group_);
  }
  Flag add_switch(const std::string& name, bool& variable, const std::string& help);
  // Includes a flag that was added elsewhere (--seed) in the settings.
  template <class T> void include(const std::string& name, const T& variable) {
    remember(name, [&variable] { return nlohmann::json(variable); });
  }
  void group(const std::string& title) { group_ = title; }

  // Applies a flat object of numbers, texts, booleans and lists of numbers; `source` begins the
  // messages.
  void apply(const nlohmann::ordered_json& values, const std::string& source);
  // Whether the command line or an earlier apply() set it.
  bool given(const std::string& name) const;

  std::set<std::string> all_given() const;

  nlohmann::ordered_json values() const;
  // The settings as a recipe: one "name = value" per line, under the titles of the groups.
  std::string toml() const;

 private:
  struct Setting {
    std::string name, group;
    std::function<nlohmann::json()> value;
  };
  void remember(const std::string& name, std::function<nlohmann::json()> value);

  std::optional<Flags> flags_;
  std::string group_;
  std::vector<Setting> settings_;
};

// Reads a TOML file of plain "name = value" lines (found by recipe_path.h), of at most 1 MiB and
// 100 dots per line. Throws InputError naming file and line.
nlohmann::ordered_json read_recipe(const std::string& path);

}  // namespace rk
