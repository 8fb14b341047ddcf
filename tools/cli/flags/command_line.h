// What stands behind a program's name: its flags, or a subcommand and its flags.
#pragma once

#include "tools/cli/flags/flags.h"

#include <memory>
#include <string>

namespace rk {

class CommandLine {
 public:
  // path: argv[0].
  CommandLine(const char* path, const std::string& description);

  // Of the program itself, and of a subcommand; with subcommands one of them must be given. They
  // are valid as long as this object.
  Flags flags();
  Flags add_subcommand(const std::string& name, const std::string& description);

  // Sets the flags' variables. Returns whether there is something to run; if not, --help or
  // --version was given, and `answers` says whether to print what it asks for. Throws UsageError,
  // with a name that may have been meant.
  bool parse(int argc, const char* const* argv, bool answers = true);

  bool chose(const std::string& subcommand) const;

 private:
  std::shared_ptr<CLI::App> app_;
};

}  // namespace rk
