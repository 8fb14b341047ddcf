#include "retrieval/passes/gpu_score_pass.h"

#include "engine/base/integers.h"
#include "engine/base/parallel.h"
#include "engine/base/random.h"
#include "engine/device/cuda/buffer.h"
#include "engine/device/cuda/context.h"
#include "engine/device/gemm.h"
#include "engine/device/in_turn.h"
#include "engine/device/mark.h"
#include "engine/device/pinned_buffer.h"
#include "kernels/blocks/score_block.h"
#include "kernels/launch.h"
#include "retrieval/passes/positive_order.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace rk {
namespace {

constexpr std::int64_t kTileRows = 2048;
constexpr std::int64_t kTileColumns = 8192;
constexpr std::int64_t kStep = 64;
static_assert(kTileColumns <= CountScores::kMostColumns);

// Uploads rows in class order, then zero rows up to `padded`: the host gathers a piece while the
// previous one is being copied.
DeviceBuffer upload_rows(const Context& context, const EmbeddingView& view,
                         const std::vector<std::int64_t>& order, std::int64_t padded) {
  constexpr std::int64_t kPieceBytes = std::int64_t{4} << 20;
  const std::int64_t dim = view.dim, row_bytes = dim * std::int64_t{sizeof(float)};
  const std::int64_t piece =
      std::clamp(kPieceBytes / row_bytes, std::int64_t{1}, std::max(padded, std::int64_t{1}));
  struct Staging {
    PinnedBuffer memory;
    Mark read;
  };
  const auto room = [&] {
    return Staging{PinnedBuffer(static_cast<std::size_t>(piece * row_bytes)), Mark(context)};
  };
  InTurn<Staging> staging(room(), room());
  DeviceBuffer out = DeviceBuffer::of<float>(padded * dim);
  for (std::int64_t begin = 0; begin < padded; begin += piece) {
    const std::int64_t count = std::min(piece, padded - begin);
    Staging& next = staging.next();
    next.read.wait();
    auto* staged = next.memory.as<float>();
    parallel_for(context.threads(), count, [&](std::int64_t i, int) {
      const std::int64_t p = begin + i;
      float* to = staged + i * dim;
      if (p < view.count) {
        std::copy_n(view.embeddings + order[at(p)] * dim, dim, to);
      } else {
        std::fill_n(to, dim, 0.0F);
      }
    });
    context.upload(out.as<float>() + begin * dim, staged,
                   static_cast<std::size_t>(count * row_bytes));
    next.read.set();
  }
  context.synchronize();
  return out;
}

// A matrix that holds `row` `times` times.
DeviceBuffer repeat_row(const Context& context, const float* row, std::int64_t dim,
                        std::int64_t times) {
  DeviceBuffer out = DeviceBuffer::of<float>(times * dim);
  auto* to = out.as<std::byte>();
  const PinnedBuffer staged(static_cast<std::size_t>(dim) * sizeof(float));
  std::copy_n(row, dim, staged.as<float>());
  context.upload(to, staged.as<float>(), staged.bytes());
  context.cuda().repeat(to, staged.bytes(), out.bytes());
  context.synchronize();
  return out;
}

template <class T> DeviceBuffer zeros(const Context& context, std::int64_t count) {
  DeviceBuffer out = DeviceBuffer::of<T>(count);
  context.clear(out.as<T>(), out.bytes());
  return out;
}

class GpuScorePass final : public ScorePass {
 public:
  GpuScorePass(const Context& context, const ClassOrder& order, const EmbeddingView& queries,
               const EmbeddingView* gallery)
      : context_(context),
        order_(order),
        dim_(queries.dim),
        columns_((gallery != nullptr ? *gallery : queries).count),
        tile_rows_(device_tile_shape(queries.count, columns_).rows),
        tile_columns_(device_tile_shape(queries.count, columns_).columns),
        tile_(DeviceBuffer::of<float>(tile_rows_ * tile_columns_)) {
    // A group may begin anywhere, so its last tile may reach beyond the queries by a tile's rows.
    const std::int64_t rows = queries.count + tile_rows_;
    const std::int64_t columns = round_up(columns_, tile_columns_);
    if (gallery != nullptr) {
      query_rows_ = upload_rows(context, queries, order.query_row, rows);
      gallery_rows_ = upload_rows(context, *gallery, order.gallery_row, columns);
    } else {
      gallery_rows_ = upload_rows(context, queries, order.query_row, std::max(rows, columns));
    }
    queries_ = gallery != nullptr ? query_rows_.as<float>() : gallery_rows_.as<float>();
    independent_ = check_position_independence();
  }

  bool gather(Positives& positives, const Poll& poll) override {
    prepare(positives);
    const bool finished = for_each_tile(
        positives.rows(), poll,
        [&](Range rows, Range columns) { return order_.may_hold_positives(rows, columns); },
        [&](const ScoreTileView& tile) {
          launch(context_, GatherPositives{tile, thresholds_.as<float>()});
        });
    if (!finished) return false;
    context_.synchronize();
    thresholds_.download(positives.all_scores().data(), thresholds_.bytes());
    return true;
  }

  bool count(Positives& positives, PairStatistics* statistics, const Poll& poll) override {
    const std::int64_t total = positives.total();
    thresholds_.upload(positives.all_scores().data(), thresholds_.bytes());
    const DeviceBuffer counts = zeros<std::int32_t>(context_, total);
    const Negatives negatives = negative_counters(statistics, positives.rows());
    const bool finished = for_each_tile(
        positives.rows(), poll, [](Range, Range) { return true; },
        [&](const ScoreTileView& tile) {
          const auto row = tile.queries - scored_.as<ScoredQuery>();
          launch(context_, CountScores{tile, thresholds_.as<float>(), counts.as<std::int32_t>(),
                                       negatives.to.from_row(row)});
        });
    if (!finished) return false;
    context_.synchronize();
    counts.download(positives.all_counts().data(), counts.bytes());
    positives.sum_counts_between(context_.threads(), CountScores::kCompareAtMost);
    if (statistics != nullptr) {
      statistics->add_counted(
          negatives.fine.values<std::uint64_t>(), negatives.jsd.values<std::uint64_t>(),
          negatives.sums.values<double>(), negatives.twice_wins.values<std::uint64_t>());
    }
    note_bytes(counts.bytes() + negatives.bytes());
    return true;
  }

  bool symmetric() const override { return false; }
  ScoreTileShape tile_shape() const override { return {tile_rows_, tile_columns_}; }
  int counters() const override { return 1; }
  bool position_independent() const override { return independent_; }
  std::int64_t flops() const override {
    return tiles_computed_ * 2 * tile_rows_ * tile_columns_ * dim_;
  }
  std::size_t bytes() const override { return peak_bytes_; }

 private:
  struct Negatives {
    DeviceBuffer fine, jsd, sorted, first, sums, twice_wins;
    NegativeCounters to;
    std::size_t bytes() const {
      return fine.bytes() + jsd.bytes() + sorted.bytes() + first.bytes() + sums.bytes() +
             twice_wins.bytes();
    }
  };

  void note_bytes(std::size_t of_this_step) {
    peak_bytes_ =
        std::max(peak_bytes_, query_rows_.bytes() + gallery_rows_.bytes() + tile_.bytes() +
                                  thresholds_.bytes() + scored_.bytes() + of_this_step);
  }

  // Uploads the group's queries and allocates its thresholds.
  void prepare(const Positives& positives) {
    std::vector<ScoredQuery> scored;
    std::int64_t first = 0;
    for (std::int64_t q = positives.rows().begin; q < positives.rows().end; ++q) {
      const ClassOrder::Query& query = order_.queries[at(q)];
      scored.push_back({query.class_begin, query.class_end, query.removed_begin, query.removed_end,
                        first, query.relevant()});
      first += query.relevant();
    }
    scored_ = {};  // those of the group before take no memory beside it
    thresholds_ = {};
    scored_ = DeviceBuffer::copy_of(scored);
    thresholds_ = DeviceBuffer::of<float>(positives.total());
    note_bytes(0);
  }

  Negatives negative_counters(const PairStatistics* statistics, Range rows) const {
    Negatives out;
    if (statistics == nullptr) return out;
    out.fine = zeros<std::uint64_t>(context_, kFineBins);
    out.sums = zeros<double>(context_, 2 * rows.size());
    out.to.sums = out.sums.as<double>();
    out.to.inverse = statistics->inverse();
    out.to.fine = out.fine.as<std::uint64_t>();
    if (!statistics->nested()) {
      out.jsd = zeros<std::uint64_t>(context_, kJsdBins);
      out.to.jsd = out.jsd.as<std::uint64_t>();
    }
    if (const PositiveOrder* order = statistics->order()) {
      out.sorted = DeviceBuffer::copy_of(order->sorted());
      out.first = DeviceBuffer::copy_of(order->first());
      out.twice_wins = zeros<std::uint64_t>(context_, rows.size());
      out.to.positives = order->view();
      out.to.positives.sorted = out.sorted.as<float>();
      out.to.positives.first = out.first.as<std::uint32_t>();
      out.to.twice_wins = out.twice_wins.as<std::uint64_t>();
    }
    return out;
  }

  // Fills the tile with the scores of tile_rows_ queries and tile_columns_ rows of the gallery.
  void multiply(const float* queries, const float* gallery) const {
    gemm(context_, {.a = {queries, tile_rows_, dim_, dim_},
                    .b = transposed(Factor<float>{gallery, tile_columns_, dim_, dim_}),
                    .c = {tile_.as<float>(), tile_rows_, tile_columns_, tile_columns_}});
  }

  // Computes the wanted tiles of `rows` against all columns and calls f(tile) for each.
  template <class Wanted, class F>
  bool for_each_tile(Range rows, const Poll& poll, Wanted&& wanted, F&& f) {
    auto* scores = tile_.as<float>();
    for (std::int64_t r = rows.begin; r < rows.end; r += tile_rows_) {
      if (!poll(static_cast<double>(r - rows.begin) / static_cast<double>(rows.size()))) {
        return false;
      }
      const Range strip{r, std::min(r + tile_rows_, rows.end)};
      for (std::int64_t c = 0; c < columns_; c += tile_columns_) {
        const Range columns{c, std::min(c + tile_columns_, columns_)};
        if (!wanted(strip, columns)) continue;
        multiply(queries_ + r * dim_, gallery_rows_.as<float>() + c * dim_);
        f(ScoreTileView{scores, tile_columns_, static_cast<int>(strip.size()), columns.begin,
                        columns.end, scored_.as<ScoredQuery>() + (r - rows.begin)});
        ++tiles_computed_;
      }
      context_.synchronize();  // so that the share told to `poll` is really done
    }
    return poll(1.0);
  }

  // The scores of equal rows must be equal at every place of a tile.
  bool check_position_independence() {
    // Of random numbers: products of a row of zeros are equal in any order of summation.
    std::vector<float> row(static_cast<std::size_t>(dim_));
    CounterRandom random(0, 0, 0);
    std::ranges::generate(row, [&] { return static_cast<float>(random.normal()); });
    const DeviceBuffer rows =
        repeat_row(context_, row.data(), dim_, std::max(tile_rows_, tile_columns_));
    const DeviceBuffer unequal = DeviceBuffer::of<std::int32_t>(tile_rows_);
    auto* scores = tile_.as<float>();
    multiply(rows.as<float>(), rows.as<float>());
    launch(context_, CountUnequal{scores, tile_columns_, static_cast<int>(tile_rows_),
                                  static_cast<int>(tile_columns_), unequal.as<std::int32_t>()});
    context_.synchronize();
    const auto found = unequal.values<std::int32_t>();
    return std::accumulate(found.begin(), found.end(), std::int64_t{0}) == 0;
  }

  const Context& context_;
  const ClassOrder& order_;
  std::int64_t dim_;
  std::int64_t columns_;
  std::int64_t tile_rows_;
  std::int64_t tile_columns_;
  DeviceBuffer tile_, query_rows_, gallery_rows_, scored_, thresholds_;
  const float* queries_ = nullptr;
  bool independent_ = true;
  std::int64_t tiles_computed_ = 0;
  std::size_t peak_bytes_ = 0;
};

}  // namespace

ScoreTileShape device_tile_shape(std::int64_t queries, std::int64_t gallery) {
  // As few tiles as possible, all of the same size, as small as that number allows.
  const auto each = [](std::int64_t count, std::int64_t most) {
    return round_up(divide_up(count, divide_up(count, most)), kStep);
  };
  return {each(queries, kTileRows), each(gallery, kTileColumns)};
}

std::int64_t device_score_bytes(std::int64_t rows, std::int64_t dim, std::int64_t positives,
                                std::int64_t ordered) {
  constexpr std::int64_t kFloat = sizeof(float), kCount = sizeof(std::int32_t),
                         kSum = sizeof(double), kWins = sizeof(std::uint64_t),
                         kQuery = sizeof(ScoredQuery);
  const ScoreTileShape tile = device_tile_shape(rows, rows);
  const std::int64_t padded = std::max(rows + tile.rows, round_up(rows, tile.columns));
  const std::int64_t held = kFloat * (tile.rows * tile.columns + padded * dim);
  const std::int64_t check = kFloat * std::max(tile.rows, tile.columns) * dim + kCount * tile.rows;
  const std::int64_t counting = positives * (kFloat + kCount) + rows * (kQuery + 2 * kSum + kWins) +
                                kWins * (kFineBins + kJsdBins) + PositiveOrder::bytes_of(ordered);
  return held + std::max(check, counting);
}

std::unique_ptr<ScorePass> make_gpu_score_pass(const Context& context, const ClassOrder& order,
                                               const EmbeddingView& queries,
                                               const EmbeddingView* gallery) {
  return std::make_unique<GpuScorePass>(context, order, queries, gallery);
}

}  // namespace rk
