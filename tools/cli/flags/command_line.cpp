#include "tools/cli/flags/command_line.h"

#include "engine/base/error.h"
#include "engine/base/nearest.h"
#include "tools/cli/flags/help_format.h"
#include "tools/cli/flags/other_names.h"
#include "tools/cli/flags/program_names.h"
#include "tools/cli/flags/shell_word.h"
#include "tools/cli/flags/whole_word.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

namespace rk {
namespace {

// The application that parsed last: the subcommand, if there is one.
CLI::App& innermost(CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : *chosen.front();
}

// What a word without a flag may have been meant for.
std::string what_for(const std::string& word, const CLI::App& app) {
  std::error_code ignored;
  const bool takes_data = app.get_option_no_throw("--data") != nullptr;
  const std::string kind = "folder:";
  const std::string folder = word.starts_with(kind) ? word.substr(kind.size()) : word;
  if (!takes_data || !std::filesystem::is_directory(folder, ignored)) return "see --help";
  return fmt::format("as data it is --data {}{}; see --help", kind, shell_word(folder));
}

std::string usage_message(CLI::App& app, const CLI::ParseError& error) {
  CLI::App& inner = innermost(app);
  // Report an unknown argument first: it is a likelier mistake than the required argument that is
  // missing because of it.
  std::vector<std::string> unknown = app.remaining(true);
  std::erase(unknown, "--");
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) names.push_back(sub->get_name());
  if (!unknown.empty()) {
    const std::string word = unknown.front().substr(0, unknown.front().find('='));
    if (word.starts_with('-')) {
      std::vector<std::string> flags = Flags(inner).names();
      for (std::string& flag : flags) flag.insert(0, "--");
      const std::string advice = name_advice(word, flags);
      return fmt::format("{}: no such flag; {}", word,
                         advice.starts_with("known") ? "see --help" : advice);
    }
    if (&inner == &app && !names.empty()) {
      return fmt::format("{}: no such subcommand; {}", word, suggestion(word, names));
    }
    return fmt::format("{}: not expected here; {}", word, what_for(word, inner));
  }
  if (&inner == &app && !names.empty()) {
    return fmt::format("no subcommand; give one of {}; see --help", fmt::join(names, ", "));
  }
  return fmt::format("{}; see --help", error.what());
}

// The value of a flag: the word that follows, null for none. Throws UsageError if that is a flag.
std::string value_behind(const CLI::Option& flag, const std::string& word, const char* next,
                         const CLI::App& app) {
  const std::string value = next != nullptr ? next : "";
  const bool follows = value.starts_with("--") && app.get_option_no_throw(value) != nullptr;
  if (next != nullptr && !follows) return value;
  const std::string type = flag.get_type_name();
  const std::size_t words = type.find('{');
  fail<UsageError>("{}: its value is missing{}{}; see --help", word,
                   words == std::string::npos ? "" : ", one of " + type.substr(words),
                   follows ? fmt::format(", {} follows", value) : "");
}

bool looks_like_a_flag(std::string_view word) {
  return word.size() > 1 && word[0] == '-' &&
         std::string_view("0123456789.").find(word[1]) == word.npos;
}

// Lists are of numbers; what is none may be a file that stands behind.
bool may_continue_list(std::string_view word) {
  return word.find_first_not_of("0123456789.,+-eE") == word.npos && !looks_like_a_flag(word);
}

bool takes_texts(const CLI::Option& flag) {
  return flag.get_expected_max() > 1 && flag.get_delimiter() == '\0';
}

// The words that the library is to parse. It takes whatever follows a flag for its value, even
// another flag, and then complains of the word behind that; it joins lists ("1,2") that are given
// twice, where the last one is to win as of all flags; it has lists of several words go on over a
// file behind them; and it takes words in brackets apart.
std::vector<std::string> words_to_parse(int argc, const char* const* argv, CLI::App& app) {
  const CLI::App* inner = &app;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) {
    if (argc > 1 && sub->get_name() == argv[1]) inner = sub;
  }
  std::vector<std::vector<std::string>> parts;      // each a flag with what belongs to it
  std::map<const CLI::Option*, std::size_t> lists;  // their places among the parts
  bool texts = false;                               // whether the flag before takes several texts
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--") {  // what follows are no flags
      parts.emplace_back(argv + i, argv + argc);
      break;
    }
    const std::string name = word.substr(0, word.find('='));
    const CLI::Option* flag = word.starts_with('-') ? inner->get_option_no_throw(name) : nullptr;
    if (word.starts_with('-')) texts = flag != nullptr && takes_texts(*flag);
    const auto value = [&](const std::string& text) { return texts ? marked_whole(text) : text; };
    std::vector<std::string> given = {word};
    if (flag == nullptr) {
      given = {value(word)};
    } else if (name != word) {
      given = {name + '=' + value(word.substr(name.size() + 1))};
    } else if (flag->get_expected_min() > 0) {
      given.push_back(value(value_behind(*flag, word, i + 1 < argc ? argv[++i] : nullptr, *inner)));
    }
    const bool list = flag != nullptr && flag->get_delimiter() != '\0';
    while (list && i + 1 < argc && may_continue_list(argv[i + 1])) {
      given.back() += flag->get_delimiter() + std::string(argv[++i]);
    }
    if (list) {
      const auto [place, first] = lists.try_emplace(flag, parts.size());
      if (!first) parts[std::exchange(place->second, parts.size())].clear();
    }
    parts.push_back(std::move(given));
  }
  std::vector<std::string> words;
  for (const auto& part : parts) words.insert(words.end(), part.begin(), part.end());
  return words;
}

}  // namespace

CommandLine::CommandLine(const char* path, const std::string& description)
    : app_(std::make_shared<CLI::App>(description)) {
  app_->formatter(help_format(path));
  app_->name(ProgramNames(path).own());
  // If a flag is given twice the last one wins, so that one can override flags of a shell alias.
  app_->option_defaults()->always_capture_default()->multi_option_policy(
      CLI::MultiOptionPolicy::TakeLast);
  app_->set_version_flag("--version", "Rankine " RK_VERSION);
}

Flags CommandLine::flags() { return Flags(*app_); }

Flags CommandLine::add_subcommand(const std::string& name, const std::string& description) {
  app_->require_subcommand(1);
  return Flags(*app_->add_subcommand(name, description));
}

bool CommandLine::parse(int argc, const char* const* argv, bool answers) {
  std::vector<std::string> words = words_to_parse(argc, argv, *app_);
  std::ranges::reverse(words);  // as the library wants them
  try {
    app_->parse(std::move(words));
  } catch (const CLI::Success& success) {
    if (answers) app_->exit(success);
    return false;
  } catch (const CLI::ParseError& error) {
    throw UsageError(usage_message(*app_, error));
  }
  return true;
}

bool CommandLine::chose(const std::string& subcommand) const {
  return app_->got_subcommand(subcommand);
}

}  // namespace rk
