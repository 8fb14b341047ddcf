// The flags of a program: names, variables, what may stand in them, help.
//
// The one door to the library that parses command lines. Its headers compile code and static
// objects into every file that includes them, seconds each; this one names two of its classes.
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

// What a value must be.
struct FlagCheck {
  // Of a word as it was typed: what is wrong with it; empty: nothing.
  using Problem = std::function<std::string(const std::string& word)>;
  FlagCheck(Problem what, std::string shown = {})
      : problem(std::move(what)), words(std::move(shown)) {}

  Problem problem;
  std::string words;  // beside the flag in --help; empty: the kind of the variable
};
FlagCheck in_range(int least, int most);
FlagCheck in_range(double least, double most);
FlagCheck one_of(std::vector<std::string> words);
// Of a file that is written: no empty word, as of a shell's variable that is not set, and no name
// beyond what file systems keep beside the ending of a temporary one.
FlagCheck file_name();
// Of integers that nobody counts to the end: to 10^18.
FlagCheck whole_number(std::int64_t least);
// Of numbers without an upper limit; the message says what was expected.
FlagCheck at_least_zero();
FlagCheck above_zero();

// One flag; copies are the same one.
class Flag {
 public:
  Flag() = default;
  explicit Flag(CLI::Option& option) : option_(&option) {}

  Flag check(const FlagCheck& check) const;
  Flag type_name(const std::string& name) const;  // in --help: --out FILE
  Flag group(const std::string& title) const;
  Flag default_text(const std::string& text) const;  // in --help, in place of the variable's value
  Flag required() const;
  Flag delimiter(char between) const;  // of values in one word
  Flag expected(int values) const;
  Flag expected(int least, int most) const;
  Flag needs(Flag other) const;
  Flag needs_no_more(Flag other) const;  // takes needs() back
  Flag excludes(Flag other) const;

  bool given() const;
  std::string name() const;
  bool takes_no_value() const;  // it may stand alone
  // As if `word` stood behind it on the command line. UsageError.
  void set(const std::string& word) const;

 private:
  CLI::Option* option_ = nullptr;
};

class Flags {
 public:
  explicit Flags(const std::string& description = "");
  // Of an application, or one of its subcommands, that lives longer.
  explicit Flags(CLI::App& app);

  // names: "--batch", "-q,--quiet", or "in" for what stands in that place without a name. The
  // variable's present value is the default and shown by --help. T: int, std::int64_t,
  // std::uint64_t, float, double, std::string, vectors of integers, doubles, texts, and arrays of
  // three floats. A number that T does not hold is refused, as are NaN and infinity.
  template <class T> Flag add(const std::string& names, T& variable, const std::string& help);
  Flag add_switch(const std::string& names, bool& variable, const std::string& help);
  // Under all flags in --help, made when that is asked for.
  void footer(std::function<std::string()> text);

  bool has(const std::string& name) const;         // "--batch"
  Flag operator[](const std::string& name) const;  // of one that is there
  std::vector<std::string> names() const;          // of all, long ones, without dashes

  // Words as a shell hands them over, without the program's name. UsageError.
  void parse(const std::vector<std::string>& words);

 private:
  std::shared_ptr<CLI::App> app_;
};

}  // namespace rk
