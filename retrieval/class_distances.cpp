#include "retrieval/class_distances.h"

#include "engine/base/integers.h"
#include "engine/base/parallel.h"
#include "retrieval/passes/undefined.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace rk {
namespace {

constexpr double kShortestCentre = 1e-12;

struct LabelledRow {
  std::int64_t label;
  const float* row;
};

// Sums vectors of equal dimension; mean_product() returns the mean of u_i.u_j over ordered pairs
// i != j.
class PairSum {
 public:
  explicit PairSum(std::int64_t dim) : sum_(static_cast<std::size_t>(dim), 0.0) {}

  void add(std::span<const double> u) {
    double squares = squares_;  // a local: g++ must assume that writes to sum_ may change squares_
    double* sum = sum_.data();
    for (std::size_t i = 0; i < u.size(); ++i) {
      sum[i] += u[i];
      squares += u[i] * u[i];
    }
    squares_ = squares;
    ++count_;
  }
  double mean_product() const {
    double all = 0;
    for (const double s : sum_) all += s * s;
    const auto n = static_cast<double>(count_);
    return (all - squares_) / (n * (n - 1));
  }
  std::int64_t count() const { return count_; }
  void clear() {
    std::ranges::fill(sum_, 0.0);
    squares_ = 0;
    count_ = 0;
  }

 private:
  std::vector<double> sum_;
  double squares_ = 0;
  std::int64_t count_ = 0;
};

double length(std::span<const double> v) {
  double squares = 0;
  for (const double x : v) squares += x * x;
  return std::sqrt(squares);
}

// Rows of one label.
using Class = std::span<const LabelledRow>;

std::vector<LabelledRow> rows_by_label(const EmbeddingView& set, const EmbeddingView* more) {
  std::vector<LabelledRow> rows;
  rows.reserve(static_cast<std::size_t>(set.count + (more != nullptr ? more->count : 0)));
  for (const EmbeddingView* view : {&set, more}) {
    if (view == nullptr) continue;
    for (std::int64_t i = 0; i < view->count; ++i) {
      rows.push_back({view->labels[i], view->embeddings + i * view->dim});
    }
  }
  std::ranges::stable_sort(rows, {}, &LabelledRow::label);
  return rows;
}

std::vector<Class> classes_of(const std::vector<LabelledRow>& rows) {
  std::vector<Class> classes;
  for (auto begin = rows.begin(); begin != rows.end();) {
    const auto end = std::find_if(begin, rows.end(),
                                  [&](const LabelledRow& r) { return r.label != begin->label; });
    classes.emplace_back(begin, end);
    begin = end;
  }
  return classes;
}

// Working memory of a thread.
struct Scratch {
  explicit Scratch(std::int64_t dim) : unit(static_cast<std::size_t>(dim)), members(dim) {}
  std::vector<double> unit;
  PairSum members;
};

struct ClassSummary {
  std::optional<double> intra;  // if the class has at least two rows
  bool has_centre = false;      // false: the centre is too short to normalise
};

// Writes the class's normalised centre to `centre` [dim]. Does not allocate.
ClassSummary summarise(const Class& rows, Scratch& scratch, std::span<double> centre) {
  ClassSummary summary;
  PairSum& members = scratch.members;
  std::vector<double>& unit = scratch.unit;
  members.clear();
  std::ranges::fill(centre, 0.0);
  for (const LabelledRow& r : rows) {
    for (std::size_t i = 0; i < unit.size(); ++i) unit[i] = static_cast<double>(r.row[i]);
    for (std::size_t i = 0; i < unit.size(); ++i) centre[i] += unit[i];
    const double norm = length(unit);
    for (double& x : unit) x = norm > 0 ? x / norm : 0;
    members.add(unit);
  }
  if (members.count() >= 2) summary.intra = 1 - members.mean_product();
  for (double& x : centre) x /= static_cast<double>(rows.size());
  const double norm = length(centre);
  summary.has_centre = norm >= kShortestCentre;
  if (summary.has_centre) {
    for (double& x : centre) x /= norm;
  }
  return summary;
}

}  // namespace

ClassDistances class_distances(const Context& context, const EmbeddingView& set,
                               const EmbeddingView* more) {
  constexpr std::int64_t kClassesEach = 64;  // per thread, before they are added up in order
  const std::vector<LabelledRow> rows = rows_by_label(set, more);
  const std::vector<Class> classes = classes_of(rows);
  const std::int64_t together =
      std::min<std::int64_t>(context.threads() * kClassesEach, std::ssize(classes));
  std::vector<Scratch> scratch(static_cast<std::size_t>(context.threads()), Scratch(set.dim));
  std::vector<ClassSummary> summaries(static_cast<std::size_t>(together));
  std::vector<double> places(static_cast<std::size_t>(together * set.dim));
  const auto centre = [&](std::int64_t c) {
    return std::span(places).subspan(static_cast<std::size_t>(c * set.dim),
                                     static_cast<std::size_t>(set.dim));
  };
  PairSum centres(set.dim);
  double intra = 0;
  std::int64_t pairs = 0;
  for (std::int64_t first = 0; first < std::ssize(classes); first += together) {
    const std::int64_t count = std::min<std::int64_t>(together, std::ssize(classes) - first);
    parallel_for(context.threads(), count, [&](std::int64_t c, int member) {
      summaries[at(c)] = summarise(classes[at(first + c)], scratch[at(member)], centre(c));
    });
    for (std::int64_t c = 0; c < count; ++c) {
      const ClassSummary& summary = summaries[at(c)];
      if (summary.intra) {
        intra += *summary.intra;
        ++pairs;
      }
      if (summary.has_centre) centres.add(centre(c));
    }
  }
  // If all rows are equal, rounding may make the distance negative.
  return {pairs > 0 ? std::max(0.0, intra / static_cast<double>(pairs)) : kUndefined,
          centres.count() >= 2 ? std::max(0.0, 1 - centres.mean_product()) : kUndefined};
}

}  // namespace rk
