// The flags of a program: names, variables, checks of values, help.
//
// The command-line library is included in this folder's .cpp files alone: its headers compile code
// and static objects into every file that includes them, which takes seconds each. This header only
// declares two of its classes.
//
//   flags.add("--batch", batch_, "images a step").check(in_range(2, 1 << 16));
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rk {

// A check of a flag's value.
struct FlagCheck {
  // Returns the problem with a word as typed; empty: none.
  using Problem = std::function<std::string(const std::string& word)>;
  FlagCheck(Problem what, std::string shown = {})
      : problem(std::move(what)), words(std::move(shown)) {}

  Problem problem;
  std::string words;  // shown in --help; empty: the variable's type
};
FlagCheck in_range(int least, int most);
FlagCheck in_range(double least, double most);
FlagCheck one_of(std::vector<std::string> words);
// Refuses nothing: shows the words that values are or begin with, for --help and for completion.
FlagCheck shown_values(const std::vector<std::string>& words);
// For an output file: refuses an empty word, such as an unset shell variable, and a name too long
// for file systems once the suffix of a temporary file is added.
FlagCheck file_name();
// For integers without a practical upper limit: up to 10^18.
FlagCheck whole_number(std::int64_t least);
// For numbers that float32 must hold: up to 1e30; the message says what was expected.
FlagCheck at_least_zero();
FlagCheck above_zero();
FlagCheck zero_to_below_one();

// A handle of one flag; copies refer to the same flag.
class Flag {
 public:
  Flag() = default;
  explicit Flag(CLI::Option& option) : option_(&option) {}

  Flag check(const FlagCheck& check) const;
  Flag type_name(const std::string& name) const;  // in --help: --out FILE
  Flag group(const std::string& title) const;
  Flag default_text(const std::string& text) const;  // in --help, instead of the variable's value
  Flag required() const;
  Flag delimiter(char between) const;  // between values in one word
  Flag expected(int least, int most) const;
  Flag needs(Flag other) const;
  Flag excludes(Flag other) const;

  bool given() const;
  std::string word() const;  // what followed it last, also while --help is written; empty: nothing
  bool takes_no_value() const;  // a switch
  // Sets the flag as if `word` followed it on the command line. Throws UsageError.
  void set(const std::string& word) const;

 private:
  CLI::Option* option_ = nullptr;
};

class Flags {
 public:
  explicit Flags(const std::string& description = "");
  // For an application, or one of its subcommands, which must outlive this object.
  explicit Flags(CLI::App& app);

  // names: "--batch", "-q,--quiet", or "in" for a positional argument. The variable's current value
  // is the default, which --help shows. T: int, std::int64_t, std::uint64_t, float, double,
  // std::string, vectors of integers, doubles and texts. A number that does not fit T is refused,
  // as are NaN and infinity.
  template <class T> Flag add(const std::string& names, T& variable, const std::string& help);
  Flag add_switch(const std::string& names, bool& variable, const std::string& help);
  // Text below the flags in --help, created only when --help is requested.
  void footer(std::function<std::string()> text);

  bool has(const std::string& name) const;         // "--batch"
  Flag operator[](const std::string& name) const;  // the flag must exist
  std::vector<std::string> names() const;          // the long names of all flags, without dashes

  // Parses words as a shell passes them, without the program's name. Throws UsageError.
  void parse(const std::vector<std::string>& words);

 private:
  std::shared_ptr<CLI::App> app_;
};

}  // namespace rk
