// The programs' names in help and advice, so that a command which they show can be typed as it
// stands. Installed programs are called rankine-train, rankine-eval, ... (cmake/install.cmake); a
// program that was started as build/bin/eval calls the others build/bin/train, ...
#pragma once

#include <string>

namespace rk {

class ProgramNames {
 public:
  // argv[0]. An absolute path is left out: it would fill the lines.
  explicit ProgramNames(const std::string& program);

  // What this program is called.
  const std::string& own() const { return own_; }
  // Advice names commands in backquotes: "see `probe --data SPEC`".
  std::string in_advice(const std::string& text) const;
  // Help does so too; besides, it has examples on lines of their own, and names before a flag.
  std::string in_help(const std::string& text) const;

 private:
  std::string own_;
  std::string before_;  // what stands before each name; mostly nothing
};

}  // namespace rk
