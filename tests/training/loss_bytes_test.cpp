// What a loss is counted with must be what it takes; on a GPU, what its rows there take.
#include "training/loss_bytes.h"

#include "kernels/cuda/row_lists.h"
#include "losses/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace rk {
namespace {

struct Case {
  std::int64_t batch, memory_batches;
};
constexpr Case kCases[] = {{64, 0}, {256, 7}, {1024, 64}, {4096, 3}};
// Of an H100, whose multiprocessors hold 8 blocks of a row's kernel.
constexpr std::int64_t kBlocks = 8 * 132;

std::int64_t counted(const Case& c, const char* loss, std::int64_t classes) {
  TrainerOptions options;
  options.loss = parse_loss(loss);
  options.batch = c.batch;
  options.memory_batches = c.memory_batches;
  options.classes = classes;
  options.model.dim = 0;
  return loss_bytes(options, true);
}

void expect_room(const char* row, const Case& c, std::int64_t columns, std::int64_t scratch,
                 std::int64_t counted) {
  const std::int64_t scores = std::int64_t{sizeof(float)} * c.batch * columns;
  EXPECT_GE(counted, scores + std::min(c.batch, kBlocks) * scratch)
      << row << ", batch " << c.batch << ", memory " << c.memory_batches;
}

// Beyond what it stores for its columns, a row may store a little, which shared memory holds.
template <class Row> void expect_gallery_room(const char* name) {
  for (const Case& c : kCases) {
    const std::int64_t columns = c.batch * (1 + c.memory_batches);
    const auto bytes = [](std::int64_t n) {
      return scratch_of<Row>(typename Row::Params{}, static_cast<int>(n), static_cast<int>(n));
    };
    expect_room(name, c, columns, bytes(columns) - bytes(0), counted(c, "smooth_ap", 0));
  }
}

template <class Row> void expect_proxy_room(const char* name) {
  for (const Case& c : kCases) {
    const std::int64_t classes = 11'318;
    expect_room(name, c, classes, Row::scratch(static_cast<int>(classes)),
                counted({c.batch, 0}, "nsl", classes));
  }
}

TEST(LossBytes, AreEnoughForTheRowsOfEveryLoss) {
#define RK_EXPECT_ROOM(Row) expect_gallery_room<Row<float>>(#Row)
  RK_HISTOGRAM_ROWS(RK_EXPECT_ROOM);
  RK_PAIR_ROWS(RK_EXPECT_ROOM);
  RK_RANK_ROWS(RK_EXPECT_ROOM);
#undef RK_EXPECT_ROOM
#define RK_EXPECT_ROOM(Row) expect_proxy_room<Row<float>>(#Row)
  RK_PROXY_ROWS(RK_EXPECT_ROOM);
#undef RK_EXPECT_ROOM
}

// On the CPU a loss takes it all when it is allocated.
TEST(LossBytes, AreWhatALossReserves) {
  const Context context(1);
  constexpr std::int64_t kRows = 384, kDim = 8;
  std::vector<std::string> specs = {"histogram:bins=4096", "auc_ba:ds=0.005", "auc_bh:ds=0.005"};
  for (const LossEntry& entry : loss_registry()) {
    if (entry.kind == LossKind::kEmbeddings) specs.push_back(entry.name);
  }
  for (const std::string& spec : specs) {
    TrainerOptions options;
    options.loss = parse_loss(spec);
    options.batch = kRows;
    options.model.dim = kDim;
    const auto loss = make_loss<float>(options.loss);
    loss->allocate(context, {.rows = kRows, .dim = kDim});
    // A row's padding and a few numbers, the scratch of the one row that runs, and the rows' totals
    // and what follows from them.
    const std::int64_t besides =
        256 * kRows + 64 * kRows + 16 * loss->numbers_per_row() + (64 << 10);
    const std::int64_t counted = loss_bytes(options, false);
    EXPECT_GE(counted + besides, loss->bytes()) << spec;
    EXPECT_LE(counted, loss->bytes() + besides) << spec;
  }
}

// On the CPU nothing else grows with the classes; each loss takes it when it is allocated.
TEST(LossBytes, AreWhatProxiesTake) {
  const Context context(1);
  for (const char* name : {"nsl", "proxy_anchor"}) {
    for (const auto& [batch, dim, classes] :
         {std::array{8, 512, 3'000}, std::array{64, 16, 200}, std::array{20, 2'048, 500}}) {
      TrainerOptions options;
      options.loss = parse_loss(name);
      options.batch = batch;
      options.classes = classes;
      options.model.dim = dim;
      const auto loss = make_loss<float>(options.loss);
      loss->allocate(context, {.rows = batch, .memory = 0, .dim = dim, .classes = classes});
      // A row's padding and a few numbers besides.
      const std::int64_t besides = 256 * (batch + classes) + (64 << 10);
      const std::int64_t counted = loss_bytes(options, false);
      EXPECT_GE(counted + besides, loss->bytes()) << name << ", " << classes << " classes";
      EXPECT_LE(counted, loss->bytes() + besides) << name << ", " << classes << " classes";
    }
  }
}

// The CPU computes in the matrix of scores.
TEST(LossBytes, AreTheMatrixAloneOnTheCpu) {
  TrainerOptions options;
  options.loss = parse_loss("smooth_ap");
  options.batch = 300;
  options.memory_batches = 2;
  options.model.dim = 5;
  EXPECT_EQ(loss_bytes(options, false), 4 * (300 * 900 + 900 * 5));
}

}  // namespace
}  // namespace rk
