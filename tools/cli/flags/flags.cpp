#include "tools/cli/flags/flags.h"

#include "engine/base/error.h"
#include "engine/base/nearest.h"
#include "tools/cli/flags/whole_word.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace rk {
namespace {

// Refuses numbers that T cannot represent. The library itself refuses words that are not numbers,
// but it clamps integers beyond T's range (before its version 2.4) and accepts NaN and infinity,
// which are of no use here and which JSON cannot store.
template <class T> FlagCheck representable() {
  return {[](const std::string& word) {
    T value{};
    errno = 0;
    const bool number = CLI::detail::lexical_cast(word, value);
    if constexpr (std::is_floating_point_v<T>) {
      if (number && !std::isfinite(value)) {
        return fmt::format("expected a finite number, got {}", word);
      }
    } else if (errno == ERANGE) {
      return fmt::format("expected a number nearer to 0, got {}", word);
    }
    return std::string();
  }};
}

// The library reads integers as C does, 010 as 8.
std::string drop_zeros(std::string& word) {
  const std::size_t begin = word.starts_with('-') || word.starts_with('+') ? 1 : 0;
  if (word.find_first_not_of("0123456789", begin) != std::string::npos) return "";
  const std::size_t end = word.find_first_not_of('0', begin);
  if (begin < word.size()) word.erase(begin, std::min(end, word.size() - 1) - begin);
  return "";
}

template <class T> struct ElementOf { using Type = T; };
template <class T> struct ElementOf<std::vector<T>> { using Type = T; };

// Limits so large that they only keep arithmetic within its bounds are not worth showing.
template <class T> std::string range_text(T least, T most) {
  return static_cast<double>(most) >= (1 << 24) ? fmt::format("{} or more", least)
                                                : fmt::format("{} to {}", least, most);
}

std::string set_text(const std::vector<std::string>& words) {
  return fmt::format("{{{}}}", fmt::join(words, ","));
}

// Replaces the library's own check, whose message calls a word that is not a number out of range.
template <class T> FlagCheck range_check(T least, T most, const char* kind) {
  return {[=](const std::string& word) {
            T value{};
            if (CLI::detail::lexical_cast(word, value) && value >= least && value <= most) {
              return std::string();
            }
            return fmt::format("expected {} of {} to {}, got {}", kind, least, most, word);
          },
          range_text(least, most)};
}

constexpr double kMostFloat = 1e30, kLeastFloat = 1e-44;  // float32: 1e-45 to 3.4e38

FlagCheck number_check(bool (*good)(double), const char* expected, const char* shown) {
  return {[good, expected](const std::string& word) {
            double value = 0;
            if (CLI::detail::lexical_cast(word, value) && good(value)) return std::string();
            return fmt::format("expected {}, got {}", expected, word);
          },
          shown};
}

}  // namespace

FlagCheck in_range(int least, int most) { return range_check(least, most, "an integer"); }
FlagCheck in_range(double least, double most) { return range_check(least, most, "a number"); }

FlagCheck one_of(std::vector<std::string> words) {
  const std::string shown = set_text(words);
  return {[words = std::move(words)](const std::string& word) -> std::string {
            if (std::ranges::find(words, word) != words.end()) return "";
            return fmt::format("{} is none of its values; {}", word, suggestion(word, words));
          },
          shown};
}

FlagCheck shown_values(const std::vector<std::string>& words) {
  return {[](const std::string&) { return std::string(); }, set_text(words)};
}

FlagCheck file_name() {
  return {[](const std::string& word) -> std::string {
    constexpr std::size_t kLongest = 230;
    if (word.empty()) return "expected the name of a file, got nothing";
    if (word.size() - (word.rfind('/') + 1) <= kLongest) return "";
    return fmt::format("expected a file name of at most {} bytes, got {}...", kLongest,
                       word.substr(word.rfind('/') + 1, 20));
  }};
}

FlagCheck whole_number(std::int64_t least) {
  return {range_check(least, std::int64_t{1'000'000'000'000'000'000}, "an integer").problem};
}

FlagCheck at_least_zero() {
  return number_check([](double value) { return value >= 0 && value <= kMostFloat; },
                      "a number of 0 or more, at most 1e30", "0 or more");
}

FlagCheck above_zero() {
  return number_check([](double value) { return value >= kLeastFloat && value <= kMostFloat; },
                      "a number above 0, 1e-44 to 1e30", "above 0");
}

FlagCheck zero_to_below_one() {
  return number_check([](double value) { return value >= 0 && value < 1; },
                      "a number from 0 to below 1", "0 to below 1");
}

Flag Flag::check(const FlagCheck& check) const {
  option_->check(CLI::Validator(
      [problem = check.problem](const std::string& word) { return problem(word); }, check.words));
  return *this;
}

Flag Flag::type_name(const std::string& name) const {
  option_->type_name(name);
  return *this;
}

Flag Flag::group(const std::string& title) const {
  option_->group(title);
  return *this;
}

Flag Flag::default_text(const std::string& text) const {
  option_->default_str(text);
  return *this;
}

Flag Flag::required() const {
  option_->required();
  return *this;
}

Flag Flag::delimiter(char between) const {
  option_->delimiter(between);
  option_->allow_extra_args(false);  // one word, to which CommandLine joins the numbers behind it
  return *this;
}

Flag Flag::expected(int least, int most) const {
  option_->expected(least, most);
  return *this;
}

Flag Flag::needs(Flag other) const {
  option_->needs(other.option_);
  return *this;
}

Flag Flag::excludes(Flag other) const {
  option_->excludes(other.option_);
  return *this;
}

bool Flag::given() const { return option_->count() > 0; }
std::string Flag::word() const { return given() ? option_->results().back() : ""; }
bool Flag::takes_no_value() const { return option_->get_expected_min() == 0; }

void Flag::set(const std::string& word) const {
  try {
    option_->add_result(word);
    option_->run_callback();
  } catch (const CLI::Error& error) {
    throw UsageError(error.what());
  }
}

Flags::Flags(const std::string& description) : app_(std::make_shared<CLI::App>(description)) {}
Flags::Flags(CLI::App& app) : app_(std::shared_ptr<CLI::App>(), &app) {}

template <class T> Flag Flags::add(const std::string& names, T& variable, const std::string& help) {
  CLI::Option* option = app_->add_option(names, variable, help);
  const Flag flag(*option);
  using Element = typename ElementOf<T>::Type;
  if constexpr (std::is_integral_v<Element>) option->transform(CLI::Validator(drop_zeros, ""));
  if constexpr (std::is_arithmetic_v<Element>) flag.check(representable<Element>());
  if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    const auto unmark = [](std::string& word) {
      drop_mark(word);
      return std::string();
    };
    option->transform(CLI::Validator(unmark, ""));
  }
  return flag;
}

Flag Flags::add_switch(const std::string& names, bool& variable, const std::string& help) {
  return Flag(*app_->add_flag(names, variable, help));
}

void Flags::footer(std::function<std::string()> text) { app_->footer(std::move(text)); }

bool Flags::has(const std::string& name) const {
  return app_->get_option_no_throw(name) != nullptr;
}

Flag Flags::operator[](const std::string& name) const { return Flag(*app_->get_option(name)); }

std::vector<std::string> Flags::names() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : app_->get_options()) {
    const std::vector<std::string>& long_ones = option->get_lnames();
    names.insert(names.end(), long_ones.begin(), long_ones.end());
  }
  return names;
}

void Flags::parse(const std::vector<std::string>& words) {
  try {
    app_->parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::Error& error) {
    throw UsageError(error.what());
  }
}

#define RK_INSTANTIATE(...) \
  template Flag Flags::add(const std::string&, __VA_ARGS__&, const std::string&)
RK_INSTANTIATE(int);
RK_INSTANTIATE(std::int64_t);
RK_INSTANTIATE(std::uint64_t);
RK_INSTANTIATE(float);
RK_INSTANTIATE(double);
RK_INSTANTIATE(std::string);
RK_INSTANTIATE(std::vector<std::int64_t>);
RK_INSTANTIATE(std::vector<double>);
RK_INSTANTIATE(std::vector<std::string>);
#undef RK_INSTANTIATE

}  // namespace rk
