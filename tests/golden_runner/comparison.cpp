#include "tests/golden_runner/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace rk::golden {
namespace {

constexpr std::size_t kSamples = 16;
constexpr std::size_t kOutliers = 2;  // samples of a row that may exceed `tolerance`

double norm(const std::vector<double>& values) {
  double sum = 0;
  for (double x : values) sum += x * x;
  return std::sqrt(sum);
}

// One number, or one a row: tolerance(row).
class Tolerance {
 public:
  Tolerance(const Hdf5Reader& file, const std::string& dataset, const std::string& name)
      : values_(file.number_attribute(dataset, name).value_or(std::vector<double>{})) {}
  bool exists() const { return !values_.empty(); }
  double operator()(std::size_t row) const {
    return values_.size() == 1 ? values_[0] : values_.at(row);
  }

 private:
  std::vector<double> values_;
};

}  // namespace

void Comparison::note(const std::string& part, double deviation, double tolerance,
                      const std::string& where) {
  tolerance *= slack_;
  if (!worst_.contains(part)) order_.push_back(part);
  Worst& worst = worst_[part];
  double share = deviation == 0 ? 0.0 : deviation / tolerance;  // x / 0 = inf: a failure
  if (std::isnan(share)) share = std::numeric_limits<double>::infinity();
  if (share > worst.share) worst = {share, deviation, tolerance, where};
  if (!(share <= 1.0)) passed_ = false;
}

void Comparison::require(bool holds, const std::string& what) {
  if (holds) return;
  passed_ = false;
  broken_.push_back(what);
}

void Comparison::compare(const std::string& part, const std::string& dataset,
                         std::span<const double> got) {
  const std::vector<double> expected = file_.read<double>(dataset);
  const Tolerance tolerance(file_, dataset, "tolerance");
  require(tolerance.exists(), dataset + " has no tolerance");
  require(got.size() == expected.size(),
          fmt::format("{}: {} elements for {}", part, got.size(), expected.size()));
  if (!tolerance.exists() || got.size() != expected.size()) return;
  const std::vector<std::int64_t> dims = file_.info(dataset).dims;
  const std::size_t rows = dims.empty() ? 1 : static_cast<std::size_t>(dims[0]);
  const std::size_t row_elements = rows == 0 ? 1 : expected.size() / rows;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    note(part, std::abs(got[i] - expected[i]), tolerance(i / row_elements), fmt::format("[{}]", i));
  }
}

void Comparison::compare_table(const std::string& part, const std::string& group,
                               const Lookup& tensor, const Lookup& initial) {
  const std::vector<std::string> names = file_.read_text(group + "/name");
  const auto numel = file_.read<std::int64_t>(group + "/numel");
  const auto index = file_.read<std::int64_t>(group + "/index");
  const auto sample = file_.read<double>(group + "/sample");
  const Tolerance sample_tolerance(file_, group + "/sample", "tolerance");
  const Tolerance sample_worst(file_, group + "/sample", "tolerance_worst");
  struct Column {
    std::string name;
    std::vector<double> expected;
    Tolerance tolerance;
  };
  std::vector<Column> columns;
  for (const std::string name : {"norm", "sum", "update_norm"}) {
    const std::string path = group + "/" + name;
    if (file_.has(path)) {
      columns.push_back({name, file_.read<double>(path), Tolerance(file_, path, "tolerance")});
    }
  }
  require(!names.empty(), group + " names nothing");
  require(!columns.empty(), group + " has neither norm nor sum nor update_norm");
  for (std::size_t row = 0; row < names.size(); ++row) {
    const Row found = tensor(names[row]);
    if (!found) continue;
    const std::vector<double>& got = *found;
    if (got.size() != static_cast<std::size_t>(numel[row])) {
      require(false,
              fmt::format("{} {}: {} elements for {}", part, names[row], got.size(), numel[row]));
      continue;
    }
    for (const Column& column : columns) {
      double value = 0;
      if (column.name == "norm") {
        value = norm(got);
      } else if (column.name == "sum") {
        for (double x : got) value += x;
      } else {
        std::vector<double> update = initial(names[row]).value();
        for (std::size_t i = 0; i < got.size(); ++i) update[i] = got[i] - update[i];
        value = norm(update);
      }
      note(part, std::abs(value - column.expected[row]), column.tolerance(row),
           names[row] + " " + column.name);
    }
    std::array<double, kSamples> deviations{};
    for (std::size_t r = 0; r < kSamples; ++r) {
      const std::size_t place = row * kSamples + r;
      const double deviation =
          std::abs(got.at(static_cast<std::size_t>(index[place])) - sample[place]);
      deviations[r] = std::isnan(deviation) ? std::numeric_limits<double>::infinity() : deviation;
    }
    std::sort(deviations.begin(), deviations.end(), std::greater<>());
    note(part, deviations[kOutliers], sample_tolerance(row), names[row] + " sample");
    const Tolerance& worst = sample_worst.exists() ? sample_worst : sample_tolerance;
    note(part, deviations[0], worst(row), names[row] + " worst sample");
  }
}

std::string Comparison::detail() const {
  std::string text;
  for (const std::string& part : order_) {
    const Worst& worst = worst_.at(part);
    text += fmt::format("{}{} {:.1e}/{:.1e}", text.empty() ? "" : " ", part, worst.deviation,
                        worst.tolerance);
    // Names the place only if it fails: a reader of a passing line wants the numbers alone.
    if (worst.share > 1.0) text += fmt::format(" ({})", worst.where);
  }
  for (const std::string& what : broken_) text += (text.empty() ? "" : "; ") + what;
  return text;
}

}  // namespace rk::golden
