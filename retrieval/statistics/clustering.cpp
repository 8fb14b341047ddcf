#include "retrieval/statistics/clustering.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/base/parallel.h"
#include "engine/base/random.h"
#include "engine/base/random_stream.h"
#include "retrieval/passes/largest_score.h"
#include "retrieval/passes/score_tiles.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace rk {
namespace {

// Candidates proposed together: enough to fill tiles, few enough that most are accepted.
constexpr std::int64_t kMostProposed = 512;
// A squared distance below this share of the squared lengths that it is computed from is rounding.
constexpr double kRounding = 1e-6;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

double square(const float* row, std::int64_t dim) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t d = 0; d < dim; ++d) {
    sum += static_cast<double>(row[d]) * static_cast<double>(row[d]);
  }
  return sum;
}

double squared_distance(const float* a, const float* b, std::int64_t dim) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t d = 0; d < dim; ++d) {
    const double difference = static_cast<double>(a[d]) - static_cast<double>(b[d]);
    sum += difference * difference;
  }
  return sum;
}

std::vector<std::int64_t> numbers(std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> out(at(end - begin));
  std::iota(out.begin(), out.end(), begin);
  return out;
}

// The rows of one or two sets, one after another.
class Rows {
 public:
  Rows(const Context& context, const EmbeddingView& set, const EmbeddingView* more)
      : context_(context), parts_{set}, dim_(set.dim), count_(set.count) {
    if (more != nullptr) {
      parts_.push_back(*more);
      count_ += more->count;
    }
  }

  std::int64_t count() const { return count_; }
  std::int64_t dim() const { return dim_; }
  int threads() const { return context_.threads(); }

  const float* row(std::int64_t i) const {
    const std::int64_t first = parts_.front().count;
    return i < first ? parts_.front().embeddings + i * dim_
                     : parts_.back().embeddings + (i - first) * dim_;
  }

  // Calls `visitor` with the products of `rows` (ascending) and `chosen` centres; visitor.place()
  // tells it which rows and centres the tiles' rows and columns are. False if interrupted.
  template <class Visitor>
  bool products(const std::vector<std::int64_t>& rows, const float* centres,
                const std::vector<std::int64_t>& chosen, Visitor& visitor,
                const std::function<bool()>& interrupted) {
    std::int64_t first = 0;
    auto from = rows.begin();
    for (const EmbeddingView& part : parts_) {
      const auto until = std::lower_bound(from, rows.end(), first + part.count);
      std::vector<std::int64_t> own(from, until);
      for (std::int64_t& row : own) row -= first;
      if (!own.empty() && !chosen.empty()) {
        const auto size = [](const auto& v) { return static_cast<std::int64_t>(v.size()); };
        ScoreTiles tiles(context_, {part.embeddings, own.data(), size(own)},
                         {centres, chosen.data(), size(chosen)}, dim_);
        visitor.place(rows.data() + (from - rows.begin()), chosen.data());
        const auto poll = [&](double) { return !interrupted || !interrupted(); };
        if (!tiles.run({0, size(own)}, visitor, poll)) return false;
      }
      from = until;
      first += part.count;
    }
    return true;
  }

 private:
  const Context& context_;
  std::vector<EmbeddingView> parts_;
  std::int64_t dim_, count_;
};

// Keeps each row's nearest centre: the least of |c|^2 / 2 - x.c, the lower number among equals.
class NearestCentre final : public TileVisitor {
 public:
  NearestCentre(const std::vector<float>& half_squares, std::vector<float>& least,
                std::vector<std::int64_t>& cluster)
      : half_squares_(half_squares), least_(least), cluster_(cluster) {}

  void place(const std::int64_t* rows, const std::int64_t* centres) {
    rows_ = rows;
    centres_ = centres;
  }
  bool wants(Range, Range) const override { return true; }
  void visit(int, const ScoreTile& tile) override {
    const std::int64_t columns = tile.columns.size();
    float half[ScoreTiles::kTileColumns];
    for (std::int64_t c = 0; c < columns; ++c) {
      half[c] = half_squares_[at(centres_[tile.columns.begin + c])];
    }
    for (std::int64_t r = tile.rows.begin; r < tile.rows.end; ++r) {
      float* scores = tile.scores + (r - tile.rows.begin) * ScoreTiles::kTileColumns;
      float least = kInfinity;
#pragma omp simd reduction(min : least)
      for (std::int64_t c = 0; c < columns; ++c) {
        scores[c] = half[c] - scores[c];
        least = std::min(least, scores[c]);
      }
      const std::int64_t row = rows_[r];
      if (least > least_[at(row)]) continue;
      const std::int64_t found =
          centres_[tile.columns.begin + (std::find(scores, scores + columns, least) - scores)];
      if (least == least_[at(row)] && found > cluster_[at(row)]) continue;
      least_[at(row)] = least;
      cluster_[at(row)] = found;
    }
  }

 private:
  const std::vector<float>& half_squares_;
  std::vector<float>& least_;
  std::vector<std::int64_t>& cluster_;
  const std::int64_t* rows_ = nullptr;
  const std::int64_t* centres_ = nullptr;
};

// Keeps each row's squared distance from the nearest of the centres drawn so far.
class NearestDrawn final : public TileVisitor {
 public:
  NearestDrawn(const std::vector<double>& squares, const std::vector<std::int64_t>& drawn,
               std::vector<double>& distance)
      : squares_(squares), drawn_(drawn), distance_(distance) {}

  void place(const std::int64_t* rows, const std::int64_t* centres) {
    rows_ = rows;
    centres_ = centres;
  }
  bool wants(Range, Range) const override { return true; }
  void visit(int, const ScoreTile& tile) override {
    for (std::int64_t r = tile.rows.begin; r < tile.rows.end; ++r) {
      const float* scores = tile.scores + (r - tile.rows.begin) * ScoreTiles::kTileColumns;
      const double own = squares_[at(rows_[r])];
      double& nearest = distance_[at(rows_[r])];
      for (std::int64_t c = 0; c < tile.columns.size(); ++c) {
        const double both = own + squares_[at(drawn_[at(centres_[tile.columns.begin + c])])];
        const double apart = both - 2 * static_cast<double>(scores[c]);
        nearest = std::min(nearest, apart > kRounding * both ? apart : 0.0);
      }
    }
  }

 private:
  const std::vector<double>& squares_;
  const std::vector<std::int64_t>& drawn_;
  std::vector<double>& distance_;
  const std::int64_t* rows_ = nullptr;
  const std::int64_t* centres_ = nullptr;
};

std::optional<std::vector<std::int64_t>> draw_start(Rows& rows, const ClusteringOptions& options) {
  const std::int64_t n = rows.count(), dim = rows.dim();
  const std::vector<std::int64_t> all = numbers(0, n);
  std::vector<double> squares(at(n)), distance(at(n), std::numeric_limits<double>::infinity());
  parallel_for(rows.threads(), n,
               [&](std::int64_t i, int) { squares[at(i)] = square(rows.row(i), dim); });
  CounterRandom random(options.seed, random_stream(RandomUseOnce::kClusterCentres), 0);
  std::vector<std::int64_t> drawn{random.below(n)};
  std::vector<double> up_to(at(n));
  std::vector<float> centres;
  for (std::int64_t known = 0;;) {
    const auto count = static_cast<std::int64_t>(drawn.size());
    if (options.progress) {
      options.progress(static_cast<double>(count) / static_cast<double>(options.clusters));
    }
    if (count == options.clusters) return drawn;
    // The rows drawn since `known`, as centres 0, 1, ... of a matrix of their own.
    const std::vector<std::int64_t> latest(drawn.begin() + known, drawn.end());
    centres.resize(at(count - known) * at(dim));
    for (std::int64_t c = known; c < count; ++c) {
      std::copy_n(rows.row(drawn[at(c)]), dim, centres.begin() + (c - known) * dim);
    }
    NearestDrawn nearest(squares, latest, distance);
    if (!rows.products(all, centres.data(), numbers(0, count - known), nearest,
                       options.interrupted)) {
      return std::nullopt;
    }
    for (const std::int64_t row : latest) distance[at(row)] = 0;
    known = count;
    std::partial_sum(distance.begin(), distance.end(), up_to.begin());
    const double total = up_to.back();
    const std::int64_t wanted = std::min({options.clusters - count, count, kMostProposed});
    for (std::int64_t i = 0; i < wanted; ++i) {
      if (total == 0) {
        drawn.push_back(random.below(n));
        continue;
      }
      const auto found = std::upper_bound(up_to.begin(), up_to.end(), random.uniform() * total);
      const std::int64_t row = std::min<std::int64_t>(found - up_to.begin(), n - 1);
      double now = distance[at(row)];
      for (std::int64_t c = known; c < static_cast<std::int64_t>(drawn.size()); ++c) {
        now = std::min(now, squared_distance(rows.row(row), rows.row(drawn[at(c)]), dim));
      }
      if (random.uniform() * distance[at(row)] < now) drawn.push_back(row);
    }
  }
}

// The state of Lloyd's algorithm: rows, centres and assignments.
class Lloyd {
 public:
  Lloyd(Rows& rows, const std::vector<std::int64_t>& start, const ClusteringOptions& options)
      : rows_(rows),
        options_(options),
        centres_(start.size() * at(rows.dim())),
        half_squares_(start.size()),
        least_(at(rows.count()), kInfinity),
        cluster_(at(rows.count()), -1),
        moved_(numbers(0, static_cast<std::int64_t>(start.size()))) {
    for (std::size_t c = 0; c < start.size(); ++c) {
      std::copy_n(rows.row(start[c]), rows.dim(), centre(static_cast<std::int64_t>(c)));
    }
    square_moved();
  }

  // Assigns every row to its nearest centre. A row whose centre has not moved is compared with the
  // moved ones only. Returns false if interrupted.
  bool assign() {
    before_ = cluster_;
    std::vector<bool> moved(half_squares_.size(), false);
    for (const std::int64_t c : moved_) moved[at(c)] = true;
    std::vector<std::int64_t> free, settled;
    for (std::int64_t i = 0; i < rows_.count(); ++i) {
      const std::int64_t own = cluster_[at(i)];
      if (own >= 0 && !moved[at(own)]) {
        settled.push_back(i);
        continue;
      }
      least_[at(i)] = kInfinity;
      cluster_[at(i)] = std::numeric_limits<std::int64_t>::max();
      free.push_back(i);
    }
    NearestCentre visitor(half_squares_, least_, cluster_);
    const auto all = numbers(0, static_cast<std::int64_t>(half_squares_.size()));
    return rows_.products(free, centres_.data(), all, visitor, options_.interrupted) &&
           rows_.products(settled, centres_.data(), moved_, visitor, options_.interrupted);
  }

  // Moves centres whose rows have changed to the mean of their rows. Returns false if there are
  // none.
  bool move() {
    const auto clusters = static_cast<std::int64_t>(half_squares_.size());
    std::vector<bool> changed(at(clusters), false);
    for (std::size_t i = 0; i < cluster_.size(); ++i) {
      if (cluster_[i] == before_[i]) continue;
      changed[at(cluster_[i])] = true;
      if (before_[i] >= 0) changed[at(before_[i])] = true;
    }
    sort_members();
    moved_.clear();
    for (std::int64_t c = 0; c < clusters; ++c) {
      if (changed[at(c)] && first_[at(c)] < first_[at(c) + 1]) moved_.push_back(c);
    }
    parallel_for(rows_.threads(), static_cast<std::int64_t>(moved_.size()),
                 [&](std::int64_t i, int) { take_mean(moved_[at(i)]); });
    square_moved();
    return !moved_.empty();
  }

  Clustering result() const {
    Clustering out;
    std::vector<bool> used(half_squares_.size(), false);
    for (const std::int64_t c : cluster_) used[at(c)] = true;
    out.clusters = static_cast<std::int64_t>(used.size());
    out.empty = std::count(used.begin(), used.end(), false);
    out.cluster = cluster_;
    return out;
  }

 private:
  float* centre(std::int64_t c) { return centres_.data() + c * rows_.dim(); }

  void square_moved() {
    parallel_for(rows_.threads(), static_cast<std::int64_t>(moved_.size()),
                 [&](std::int64_t i, int) {
                   const std::int64_t c = moved_[at(i)];
                   half_squares_[at(c)] = static_cast<float>(square(centre(c), rows_.dim()) / 2);
                 });
  }

  void sort_members() {
    first_.assign(half_squares_.size() + 1, 0);
    for (const std::int64_t c : cluster_) ++first_[at(c) + 1];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    std::vector<std::int64_t> next(first_.begin(), first_.end() - 1);
    members_.resize(cluster_.size());
    for (std::size_t i = 0; i < cluster_.size(); ++i) {
      members_[at(next[at(cluster_[i])]++)] = static_cast<std::int64_t>(i);
    }
  }

  void take_mean(std::int64_t c) {
    std::vector<double> sum(at(rows_.dim()), 0.0);
    for (std::int64_t m = first_[at(c)]; m < first_[at(c) + 1]; ++m) {
      const float* row = rows_.row(members_[at(m)]);
      for (std::size_t d = 0; d < sum.size(); ++d) sum[d] += static_cast<double>(row[d]);
    }
    const auto count = static_cast<double>(first_[at(c) + 1] - first_[at(c)]);
    float* out = centre(c);
    for (std::size_t d = 0; d < sum.size(); ++d) out[d] = static_cast<float>(sum[d] / count);
  }

  Rows& rows_;
  const ClusteringOptions& options_;
  std::vector<float> centres_, half_squares_;
  std::vector<float> least_;  // for every row x: |c|^2 / 2 - x.c of its centre c
  std::vector<std::int64_t> cluster_, before_, moved_, first_, members_;
};

void check(const Rows& rows, const ClusteringOptions& options) {
  expect(options.clusters >= 1 && options.clusters <= rows.count() && options.iterations >= 1,
         "[k_means] expected 1 to {} clusters and iterations, got {} and {}", rows.count(),
         options.clusters, options.iterations);
}

}  // namespace

std::optional<Clustering> k_means(const Context& context, const EmbeddingView& set,
                                  const EmbeddingView* more, const ClusteringOptions& options) {
  Rows rows(context, set, more);
  check(rows, options);
  (void)largest_score_of_any(context, set, more);  // refuses what float32 cannot hold
  // The start and the assignments cost about the same each.
  const double passes = options.iterations + 2;
  ClusteringOptions starting = options;
  if (options.progress) {
    starting.progress = [&](double done) { options.progress(done / passes); };
  }
  const auto start = draw_start(rows, starting);
  if (!start) return std::nullopt;
  Lloyd lloyd(rows, *start, options);
  for (int iteration = 0;; ++iteration) {
    if (!lloyd.assign()) return std::nullopt;
    if (options.progress) options.progress((iteration + 2) / passes);
    if (iteration == options.iterations || !lloyd.move()) {
      if (options.progress) options.progress(1);
      Clustering out = lloyd.result();
      out.start = *start;
      out.iterations = iteration;
      return out;
    }
  }
}

}  // namespace rk
