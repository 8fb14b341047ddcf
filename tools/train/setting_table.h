// A program's settings by name, so that one list serves its flags, recipe files and the record of a
// run.
//
// Three sources may set one: the command line, then a recipe (TOML), then the run that is resumed.
// An earlier source wins; apply() fills in only what none has set yet, through the flag's own
// checks. Names in files may be written with '-' or '_'. An unknown name is an InputError that
// suggests the nearest.
#pragma once

#include "tools/cli/flags.h"

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

  // --name in the present group; the variable's value is the default.
  template <class T> Flag add(const std::string& name, T& variable, const std::string& help) {
    remember(name, [&variable] { return nlohmann::json(variable); });
    return flags_->add("--" + name, variable, help).group(group_);
  }
  Flag add_switch(const std::string& name, bool& variable, const std::string& help);
  // A flag that somebody else added (--seed) and that belongs to the settings too.
  template <class T> void include(const std::string& name, const T& variable) {
    remember(name, [&variable] { return nlohmann::json(variable); });
  }
  void group(const std::string& title) { group_ = title; }

  // A flat object of numbers, texts, booleans and lists of numbers; `source` begins the messages.
  void apply(const nlohmann::ordered_json& values, const std::string& source);
  // Has the command line or an apply() so far set it?
  bool given(const std::string& name) const;

  std::set<std::string> all_given() const;

  nlohmann::ordered_json values() const;
  // As a recipe: one "name = value" a line under its group's title.
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

// A TOML file of plain "name = value" lines (tools/train/recipe_path.h finds it), of 1 MiB at most
// and no more than 100 dots a line. InputError naming file and line.
nlohmann::ordered_json read_recipe(const std::string& path);

}  // namespace rk
