#include "tools/cli/flags/help_format.h"

#include "tools/cli/flags/program_names.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace rk {
namespace {

constexpr std::size_t kNames = 32, kLine = 100;  // where descriptions begin and end

using Options = std::vector<const CLI::Option*>;

// Broken at words into lines that fit between kNames and kLine.
std::vector<std::string> wrapped(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream paragraphs(text);
  for (std::string paragraph; std::getline(paragraphs, paragraph);) {
    lines.emplace_back();
    std::istringstream words(paragraph);
    for (std::string word; words >> word;) {
      std::string& line = lines.back();
      if (line.empty()) {
        line = word;
      } else if (line.size() + 1 + word.size() <= kLine - kNames) {
        line += ' ' + word;
      } else {
        lines.push_back(word);
      }
    }
  }
  return lines;
}

// A name and, from column kNames on, what it means; on a line of its own if it is long, for only
// two blanks tell the one from the other.
std::string entry(const std::string& name, const std::string& description) {
  std::string out = "  " + name;
  std::size_t column = out.size();
  if (column + 2 > kNames) {
    out += '\n';
    column = 0;
  }
  for (const std::string& line : wrapped(description)) {
    out += fmt::format("{:{}}{}\n", "", kNames - column, line);
    column = 0;
  }
  return out;
}

std::string names_of(const std::set<CLI::Option*>& options, const char* title) {
  std::string out;
  if (!options.empty()) out = fmt::format(" {}:", title);
  for (const CLI::Option* option : options) out += ' ' + option->get_name();
  return out;
}

// Empty for an empty list, which each version of the library writes in its own way.
std::string default_of(const CLI::Option& option) {
  const std::string text = option.get_default_str();
  return text.empty() || text == "[]" || text == "{}" ? "" : '=' + text;
}

// What a flag takes: its type, its default, how many values, and which flags go with it.
std::string values_of(const CLI::Option& option) {
  std::string out;
  if (option.get_type_size() != 0) {
    if (!option.get_type_name().empty()) out += ' ' + option.get_type_name();
    out += default_of(option);
    if (option.get_expected_max() == CLI::detail::expected_max_vector_size) out += " ...";
    if (option.get_required()) out += " REQUIRED";
  }
  return out + names_of(option.get_needs(), "Needs") + names_of(option.get_excludes(), "Excludes");
}

// Laid out by ourselves, for CLI11 does so in another way with every version, and man pages and
// completions are made from --help (tools/scripts/manual.sh).
class Help final : public CLI::FormatterBase {
 public:
  explicit Help(const char* program) : names_(program) {}

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const override {
    const Options positionals =
        app->get_options([](const CLI::Option* option) { return option->get_positional(); });
    const auto subcommands = app->get_subcommands([](const CLI::App*) { return true; });
    std::string out = names_.in_help(app->get_description() + '\n');
    out += fmt::format("Usage: {} [OPTIONS]", name);
    for (const CLI::Option* option : positionals) out += fmt::format(" [{}]", option->get_name());
    if (!subcommands.empty()) out += " SUBCOMMAND";
    out += '\n' + group("Positionals", positionals);
    for (const std::string& title : app->get_groups()) {
      const auto of_group = [&](const CLI::Option* option) {
        return option->get_group() == title && option->nonpositional();
      };
      out += group(title == "OPTIONS" ? "Options" : title, app->get_options(of_group));
    }
    if (!subcommands.empty()) out += "\nSubcommands:\n";
    for (const CLI::App* sub : subcommands) out += entry(sub->get_name(), sub->get_description());
    const std::string footer = app->get_footer();
    if (!footer.empty()) out += names_.in_help(footer + '\n');
    return out;
  }

 private:
  std::string group(const std::string& title, const Options& options) const {
    std::string out;
    if (!title.empty() && !options.empty()) out = fmt::format("\n{}:\n", title);
    for (const CLI::Option* option : options) {
      out += entry(option->get_name(option->get_positional(), true) + values_of(*option),
                   names_.in_help(option->get_description()));
    }
    return out;
  }

  ProgramNames names_;
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_format(const char* program) {
  return std::make_shared<Help>(program);
}

}  // namespace rk
