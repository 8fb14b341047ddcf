#include "losses/frame/entry.h"

#include "engine/base/error.h"
#include "engine/base/nearest.h"
#include "engine/base/number_in.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace rk {
std::string range_text(const LossParameter& parameter) {
  if (!parameter.choices.empty()) return fmt::format("{}", fmt::join(parameter.choices, "|"));
  return fmt::format("{}{} to {}", parameter.integer ? "integer, " : "", parameter.low,
                     parameter.high);
}

void check_value(const std::string& loss, const LossParameter& parameter, const std::string& text) {
  const auto& choices = parameter.choices;
  if (!choices.empty()) {
    if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
      fail<UsageError>("{}: {}={} is not a choice; {}", loss, parameter.name, text,
                       suggestion(text, choices));
    }
    return;
  }
  const std::optional<double> value = number_in<double>(text);
  const bool fits = value && *value >= parameter.low && *value <= parameter.high &&
                    (!parameter.integer || *value == std::floor(*value));
  if (!fits) {
    fail<UsageError>("{}: {}={} cannot be; give {}{}", loss, parameter.name, text,
                     parameter.integer ? "an " : "", range_text(parameter));
  }
}

LossParameter number_parameter(std::string name, std::string fallback, double low, double high,
                               std::string meaning) {
  return {.name = std::move(name),
          .fallback = std::move(fallback),
          .low = low,
          .high = high,
          .integer = false,
          .choices = {},
          .meaning = std::move(meaning)};
}

LossParameter integer_parameter(std::string name, int fallback, int low, int high,
                                std::string meaning) {
  return {.name = std::move(name),
          .fallback = std::to_string(fallback),
          .low = static_cast<double>(low),
          .high = static_cast<double>(high),
          .integer = true,
          .choices = {},
          .meaning = std::move(meaning)};
}

LossParameter choice_parameter(std::string name, std::vector<std::string> choices,
                               std::string meaning) {
  std::string first = choices.front();
  return {.name = std::move(name),
          .fallback = std::move(first),
          .low = 0,
          .high = 0,
          .integer = false,
          .choices = std::move(choices),
          .meaning = std::move(meaning)};
}

LossParameter compat_parameter(const std::string& official) {
  return choice_parameter("compat", {"paper", "official"}, "official: " + official);
}

LossParameter unless(const std::string& setting, LossParameter parameter) {
  parameter.unless = setting;
  return parameter;
}

double LossValues::number(const std::string& name) const {
  return *number_in<double>(text_.at(name));
}

int LossValues::integer(const std::string& name) const { return static_cast<int>(number(name)); }

bool LossValues::is(const std::string& name, std::string_view choice) const {
  return text_.at(name) == choice;
}

}  // namespace rk
