#include "tools/cli/flags/help_format.h"

#include "tools/cli/flags/program_names.h"

#include <CLI/CLI.hpp>

#include <sstream>

namespace rk {
namespace {

// Wraps descriptions at words; CLI11 leaves this to the terminal, which breaks inside words.
class WrappedHelp final : public CLI::Formatter {
 public:
  explicit WrappedHelp(const char* program) : names_(program) { column_width(kNames); }
  std::string make_description(const CLI::App* app) const override {
    return names_.in_help(CLI::Formatter::make_description(app));
  }
  std::string make_footer(const CLI::App* app) const override {
    return names_.in_help(CLI::Formatter::make_footer(app));
  }
  // Only two blanks tell a description from what stands before it.
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    const std::string name = make_option_name(option, is_positional) + make_option_opts(option);
    std::ostringstream out;
    const bool too_near = kNameIndent + name.size() + 1 == kNames;
    if (too_near) out << std::string(kNameIndent, ' ') << name << '\n';
    CLI::detail::format_help(out, too_near ? "" : name, make_option_desc(option), kNames);
    return out.str();
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    std::string out;
    std::size_t line = 0;
    std::istringstream words(names_.in_help(CLI::Formatter::make_option_desc(option)));
    for (std::string paragraph; std::getline(words, paragraph); line = 0) {
      if (!out.empty()) out += '\n';
      std::istringstream in(paragraph);
      for (std::string word; in >> word; line += word.size() + 1) {
        if (line > 0 && line + word.size() > kLine - kNames) {
          out += '\n';
          line = 0;
        }
        if (line > 0) out += ' ';
        out += word;
      }
    }
    return out;
  }

 private:
  static constexpr std::size_t kNameIndent = 2, kNames = 32, kLine = 100;
  ProgramNames names_;
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_format(const char* program) {
  return std::make_shared<WrappedHelp>(program);
}

}  // namespace rk
