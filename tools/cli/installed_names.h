// The programs' names in help and advice. Installed programs are called rankine-train,
// rankine-eval, ... (cmake/install.cmake), so that one that was started by such a name must call
// the others so, too.
#pragma once

#include <string>

namespace rk {

class InstalledNames {
 public:
  explicit InstalledNames(const std::string& program);  // argv[0]

  // Advice names commands in backquotes: "see `probe --data SPEC`".
  std::string in_advice(const std::string& text) const;
  // Help does so too; besides, it has examples on lines of their own, and names before a flag.
  std::string in_help(const std::string& text) const;

 private:
  bool installed_;
};

}  // namespace rk
