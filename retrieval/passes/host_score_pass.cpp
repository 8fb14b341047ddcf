#include "retrieval/passes/rank_counter.h"
#include "retrieval/passes/score_pass.h"
#include "retrieval/passes/score_tiles.h"

#include <algorithm>

namespace rk {
namespace {

class HostScorePass final : public ScorePass {
 public:
  HostScorePass(const Context& context, const ClassOrder& order, const EmbeddingView& queries,
                const EmbeddingView& gallery, bool symmetric)
      : context_(context),
        order_(order),
        symmetric_(symmetric),
        tiles_(context, {queries.embeddings, order.query_row.data(), queries.count},
               {gallery.embeddings, order.gallery_row.data(), gallery.count}, queries.dim) {}

  bool gather(Positives& positives, const Poll& poll) override {
    return positives.gather(order_, tiles_, poll);
  }

  bool count(Positives& positives, PairStatistics* statistics, const Poll& poll) override {
    RankCounter counter(context_.threads(), order_, positives, symmetric_, statistics);
    if (!tiles_.run(positives.rows(), counter, poll)) return false;
    counter.finish();
    counter_bytes_ = std::max(counter_bytes_, counter.bytes());
    return true;
  }

  bool symmetric() const override { return symmetric_; }
  ScoreTileShape tile_shape() const override {
    return {ScoreTiles::kTileRows, ScoreTiles::kTileColumns};
  }
  int counters() const override { return context_.threads(); }
  bool position_independent() const override { return tiles_.position_independent(); }
  std::int64_t flops() const override { return tiles_.tiles_computed() * tiles_.flops_per_tile(); }
  std::size_t bytes() const override { return tiles_.bytes() + counter_bytes_; }

 private:
  const Context& context_;
  const ClassOrder& order_;
  bool symmetric_;
  ScoreTiles tiles_;
  std::size_t counter_bytes_ = 0;
};

}  // namespace

std::unique_ptr<ScorePass> make_host_score_pass(const Context& context, const ClassOrder& order,
                                                const EmbeddingView& queries,
                                                const EmbeddingView* gallery, bool symmetric) {
  return std::make_unique<HostScorePass>(context, order, queries,
                                         gallery != nullptr ? *gallery : queries, symmetric);
}

}  // namespace rk
