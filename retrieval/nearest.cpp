#include "retrieval/nearest.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/base/parallel.h"
#include "retrieval/passes/largest_score.h"
#include "retrieval/passes/score_tiles.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace rk {
namespace {

// The order of a query's neighbours, best first.
class Order {
 public:
  Order(const EmbeddingView& queries, const EmbeddingView& gallery, Ties ties, std::int64_t query)
      : labels_(ties == Ties::kOwnClassLast ? gallery.labels : nullptr),
        own_(labels_ != nullptr ? queries.labels[query] : 0) {}

  bool operator()(const Neighbour& a, const Neighbour& b) const {
    if (a.score != b.score) return a.score > b.score;
    if (labels_ != nullptr && is_own(a) != is_own(b)) return is_own(b);
    return a.row < b.row;
  }

 private:
  bool is_own(const Neighbour& of) const { return labels_[of.row] == own_; }

  const std::int64_t* labels_;  // null: ties ignore labels
  std::int64_t own_;
};

// Keeps the best k of each row of tiles in a heap with the worst on top.
class BestOfTiles final : public TileVisitor {
 public:
  // `rows`: of the gallery, by position.
  BestOfTiles(const EmbeddingView& queries, const EmbeddingView& gallery,
              const std::vector<std::int64_t>& rows, bool self, Ties ties, Neighbours& best)
      : queries_(queries),
        gallery_(gallery),
        rows_(rows),
        self_(self),
        ties_(ties),
        by_camera_(queries.cameras != nullptr && gallery.cameras != nullptr),
        best_(best) {}

  bool wants(Range /*rows*/, Range /*columns*/) const override { return true; }

  void visit(int /*member*/, const ScoreTile& tile) override {
    for (std::int64_t q = tile.rows.begin; q < tile.rows.end; ++q) {
      const float* scores = tile.scores + (q - tile.rows.begin) * ScoreTiles::kTileColumns;
      const std::int64_t count = tile.columns.size();
      float highest = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : highest)
      for (std::int64_t i = 0; i < count; ++i) highest = std::max(highest, scores[i]);
      // Rows of a tile ascend.
      const std::int64_t* rows = rows_.data() + tile.columns.begin;
      if (!may_enter(highest, rows[0], q)) continue;
      for (std::int64_t i = 0; i < count; ++i) {
        if (may_enter(scores[i], rows[i], q)) add(q, rows[i], scores[i]);
      }
    }
  }

 private:
  // Whether a score, of this row or of later ones, may be among the best.
  bool may_enter(float score, std::int64_t row, std::int64_t q) const {
    const std::span<const Neighbour> kept = best_.of(q);
    if (static_cast<std::int64_t>(kept.size()) < best_.k()) return true;
    const Neighbour& worst = kept.front();
    if (score != worst.score) return score > worst.score;
    return ties_ != Ties::kByRow || row < worst.row;
  }

  bool removed(std::int64_t q, std::int64_t g) const {
    if (self_ && q == g) return true;
    return by_camera_ && queries_.labels[q] == gallery_.labels[g] &&
           queries_.cameras[q] == gallery_.cameras[g];
  }

  void add(std::int64_t q, std::int64_t g, float score) {
    if (removed(q, g)) return;
    const std::span<Neighbour> room = best_.room(q);
    std::int32_t& count = best_.count(q);
    const Order before(queries_, gallery_, ties_, q);
    const Neighbour next = {score, static_cast<std::int32_t>(g)};
    if (count == best_.k()) {
      if (!before(next, room.front())) return;
      std::pop_heap(room.begin(), room.end(), before);
      --count;
    }
    room[at(count++)] = next;
    std::push_heap(room.begin(), room.begin() + count, before);
  }

  const EmbeddingView& queries_;
  const EmbeddingView& gallery_;
  const std::vector<std::int64_t>& rows_;
  bool self_;
  Ties ties_;
  bool by_camera_;
  Neighbours& best_;
};

std::vector<std::int64_t> as_given(std::int64_t count) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  return order;
}

// All rows, by tiles of columns, each of which lies far in the gallery from the one before. Of rows
// in order of their length, or of a film's frames, most would else beat all before them, and enter
// a query's best only to leave them again.
std::vector<std::int64_t> scattered(std::int64_t count) {
  const std::int64_t tiles = count / ScoreTiles::kTileColumns;
  auto step =
      std::max(std::int64_t{1}, static_cast<std::int64_t>(0.618 * static_cast<double>(tiles)));
  while (std::gcd(step, tiles) > 1) ++step;
  std::vector<std::int64_t> order = as_given(count);
  for (std::int64_t i = 0; i < tiles; ++i) {
    std::iota(order.begin() + i * ScoreTiles::kTileColumns,
              order.begin() + (i + 1) * ScoreTiles::kTileColumns,
              i * step % tiles * ScoreTiles::kTileColumns);
  }
  return order;
}

}  // namespace

std::optional<Neighbours> nearest(const Context& context, const EmbeddingView& queries,
                                  const EmbeddingView* gallery, const NearestOptions& options) {
  const EmbeddingView& candidates = gallery != nullptr ? *gallery : queries;
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  expect(options.k > 0 && queries.count > 0 && candidates.count > 0 && queries.count <= kMost &&
             candidates.count <= kMost && candidates.dim == queries.dim,
         "[nearest] expected k, rows and one dimension, got k = {}, {} rows of {} and {} of {}",
         options.k, queries.count, queries.dim, candidates.count, candidates.dim);
  (void)largest_score(context, queries, gallery);  // refuses what float32 cannot hold
  Neighbours best(queries.count, std::min(options.k, candidates.count));
  const std::vector<std::int64_t> query_order = as_given(queries.count);
  const std::vector<std::int64_t> gallery_order = scattered(candidates.count);
  ScoreTiles tiles(context, {queries.embeddings, query_order.data(), queries.count},
                   {candidates.embeddings, gallery_order.data(), candidates.count}, queries.dim);
  BestOfTiles visitor(queries, candidates, gallery_order, gallery == nullptr, options.ties, best);
  const auto poll = [&](double done) {
    if (options.progress) options.progress(done);
    return !options.interrupted || !options.interrupted();
  };
  if (!tiles.run({0, queries.count}, visitor, poll)) return std::nullopt;
  parallel_for(context.threads(), queries.count, [&](std::int64_t q, int) {
    const std::span<Neighbour> room = best.room(q);
    std::sort_heap(room.begin(), room.begin() + best.count(q),
                   Order(queries, candidates, options.ties, q));
  });
  return best;
}

}  // namespace rk
