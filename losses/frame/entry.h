// What the registry knows of a loss: its name, its paper, its parameters with their ranges, and the
// functions that make it.
#pragma once

#include "engine/tape/parameters.h"
#include "losses/frame/loss.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rk {

enum class LossKind {
  kEmbeddings,  // embeddings and labels, optionally memory
  kProxies,     // embeddings, labels 0..C-1 and learnable proxies [C, D]
  kScores,      // scores and targets [N, C]
};

// Whether a memory can extend the gallery; losses on proxies or scores have no gallery.
constexpr bool takes_memory(LossKind kind) { return kind == LossKind::kEmbeddings; }

// A number within [low, high], or one of `choices` if that list is not empty.
struct LossParameter {
  std::string name;
  std::string fallback;  // the default, as text
  double low = 0;
  double high = 0;
  bool integer = false;
  std::vector<std::string> choices;
  std::string meaning;
  // NAME=NUMBER of another parameter, with which this one has no effect; empty: it always has.
  std::string unless{};
};

// Helpers for entries; the default of a choice is its first.
LossParameter number_parameter(std::string name, std::string fallback, double low, double high,
                               std::string meaning);
LossParameter integer_parameter(std::string name, int fallback, int low, int high,
                                std::string meaning);
LossParameter choice_parameter(std::string name, std::vector<std::string> choices,
                               std::string meaning);
// compat=paper|official, for losses whose authors' code differs from their paper.
LossParameter compat_parameter(const std::string& official);

// `parameter`, which has no effect where another one has the value of `setting`, NAME=NUMBER.
LossParameter unless(const std::string& setting, LossParameter parameter);

// "0 to 4", "integer, 1 to 4096", "paper|official".
std::string range_text(const LossParameter& parameter);
// Throws UsageError if `text` is not a value of this parameter of `loss`.
void check_value(const std::string& loss, const LossParameter& parameter, const std::string& text);

// Parameter values of one loss, complete and checked.
class LossValues {
 public:
  double number(const std::string& name) const;
  int integer(const std::string& name) const;
  bool is(const std::string& name, std::string_view choice) const;
  void set(const std::string& name, const std::string& text) { text_[name] = text; }
  const std::map<std::string, std::string>& text() const { return text_; }

 private:
  std::map<std::string, std::string> text_;
};

struct LossEntry {
  std::string name;
  LossKind kind = LossKind::kEmbeddings;
  std::string summary;  // one line: what it rewards
  std::string paper;    // authors, year, equations
  std::vector<LossParameter> parameters;
  std::unique_ptr<Loss<float>> (*make_float)(const LossValues&) = nullptr;
  std::unique_ptr<Loss<double>> (*make_double)(const LossValues&) = nullptr;
  // False if the gradient is not the value's derivative: the value is piecewise constant, and the
  // gradient that of an interpolation.
  bool differentiable = true;
  // Sigmoids (or other exponentials) per query, for `bench loss`; null: none worth counting.
  double (*sigmoids)(double columns, double positives) = nullptr;
  // How many scores of a query have a gradient, if only a few; 0: any number.
  int scores_with_gradient = 0;
  // Initialisation of proxies [classes, dim], for kProxies.
  Initial (*proxy_start)(std::int64_t classes, std::int64_t dim) = nullptr;
  std::vector<std::string> other_names{};  // by which other libraries have it, for suggestions
};

}  // namespace rk
