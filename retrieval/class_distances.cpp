#include "retrieval/class_distances.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace rk {
namespace {

constexpr double kShortestCentre = 1e-12;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct LabelledRow {
  std::int64_t label;
  const float* row;
};

// Sums vectors of one length and answers with the mean of u_i.u_j over ordered pairs i != j.
class PairSum {
 public:
  explicit PairSum(std::int64_t dim) : sum_(static_cast<std::size_t>(dim), 0.0) {}

  void add(const std::vector<double>& u) {
    for (std::size_t i = 0; i < sum_.size(); ++i) {
      sum_[i] += u[i];
      squares_ += u[i] * u[i];
    }
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
    std::fill(sum_.begin(), sum_.end(), 0.0);
    squares_ = 0;
    count_ = 0;
  }

 private:
  std::vector<double> sum_;
  double squares_ = 0;
  std::int64_t count_ = 0;
};

double length(const std::vector<double>& v) {
  double squares = 0;
  for (const double x : v) squares += x * x;
  return std::sqrt(squares);
}

}  // namespace

ClassDistances class_distances(const EmbeddingView& set, const EmbeddingView* more) {
  std::vector<LabelledRow> rows;
  rows.reserve(static_cast<std::size_t>(set.count + (more != nullptr ? more->count : 0)));
  for (const EmbeddingView* view : {&set, more}) {
    if (view == nullptr) continue;
    for (std::int64_t i = 0; i < view->count; ++i) {
      rows.push_back({view->labels[i], view->embeddings + i * view->dim});
    }
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const LabelledRow& a, const LabelledRow& b) { return a.label < b.label; });

  const auto dim = static_cast<std::size_t>(set.dim);
  PairSum members(set.dim), centres(set.dim);
  std::vector<double> unit(dim), centre(dim);
  double intra = 0;
  std::int64_t classes = 0;
  for (auto begin = rows.begin(); begin != rows.end();) {
    const auto end = std::find_if(begin, rows.end(),
                                  [&](const LabelledRow& r) { return r.label != begin->label; });
    members.clear();
    std::fill(centre.begin(), centre.end(), 0.0);
    for (auto r = begin; r != end; ++r) {
      for (std::size_t i = 0; i < dim; ++i) unit[i] = static_cast<double>(r->row[i]);
      for (std::size_t i = 0; i < dim; ++i) centre[i] += unit[i];
      const double norm = length(unit);
      for (double& x : unit) x = norm > 0 ? x / norm : 0;
      members.add(unit);
    }
    if (members.count() >= 2) {
      intra += 1 - members.mean_product();
      ++classes;
    }
    for (double& x : centre) x /= static_cast<double>(end - begin);
    const double norm = length(centre);
    if (norm >= kShortestCentre) {
      for (double& x : centre) x /= norm;
      centres.add(centre);
    }
    begin = end;
  }
  return {classes > 0 ? intra / static_cast<double>(classes) : kNaN,
          centres.count() >= 2 ? 1 - centres.mean_product() : kNaN};
}

}  // namespace rk
