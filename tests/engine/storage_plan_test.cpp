#include "engine/tape/storage_plan.h"
#include "engine/base/integers.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace rk {
namespace {

class NothingNode final : public Node {
 public:
  explicit NothingNode(bool sums = false) : Node("nothing"), sums_(sums) {}
  std::string_view kind() const override { return "test"; }
  bool sums_gradient(std::size_t /*input*/, const EdgeUse& /*use*/) const override { return sums_; }
  void forward() override {}
  void backward() override {}

 private:
  bool sums_;
};

const Shape kImage{2, 3, 5, 7};
const std::size_t kBytes = 2 * 3 * 5 * 7 * sizeof(float);

TensorId append(Tape& tape, const std::vector<NodeInput>& inputs, RecordedTensor result = {},
                bool sums = false) {
  result.shape = kImage;
  result.wants_gradient = true;
  tape.output = tape.append(std::make_unique<NothingNode>(sums), inputs, 0, std::move(result));
  return tape.output;
}

testing::AssertionResult lives(const StoragePlan& plan, StorageId id, int first, int last) {
  const Lifetime& life = plan.lifetimes().at(static_cast<std::size_t>(id));
  if (life.first == first && life.last == last) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "from " << life.first << " to " << life.last;
}

// Four nodes: times 0 to 3 forward, the loss at 4, and then 5 to 8 backward.
TEST(StoragePlan, ValuesLiveUntilTheirLastReader) {
  Tape tape;
  const TensorId x = tape.add({.shape = kImage});
  const TensorId a = append(tape, {{.tensor = x}});
  const TensorId b = append(tape, {{.tensor = a, .read_in_backward = true}});
  const TensorId c = append(tape, {{.tensor = b}}, {.read_in_backward = true});
  const TensorId y = append(tape, {{.tensor = c}});

  const StoragePlan forward(tape, /*gradients=*/false, /*keep_all=*/false);
  EXPECT_TRUE(lives(forward, forward.of(x).value, 0, 0));
  EXPECT_TRUE(lives(forward, forward.of(b).value, 1, 2));
  EXPECT_TRUE(lives(forward, forward.of(y).value, 3, 4));
  EXPECT_EQ(forward.of(y).gradient, -1);

  const StoragePlan plan(tape, /*gradients=*/true, /*keep_all=*/false);
  EXPECT_TRUE(lives(plan, plan.of(a).value, 0, 7));  // b's backward
  EXPECT_TRUE(lives(plan, plan.of(b).value, 1, 2));
  EXPECT_TRUE(lives(plan, plan.of(c).value, 2, 6));  // its own
  EXPECT_TRUE(lives(plan, plan.of(y).gradient, 4, 5));
  EXPECT_TRUE(lives(plan, plan.of(c).gradient, 5, 6));
  EXPECT_EQ(plan.of(x).gradient, -1);
  EXPECT_EQ(plan.lifetimes()[at(plan.of(x).value)].bytes, kBytes);
}

TEST(StoragePlan, TheFirstWriterOfAGradientOverwrites) {
  Tape tape;
  const TensorId a = append(tape, {});
  const TensorId b = append(tape, {{.tensor = a}});
  append(tape, {{.tensor = a}, {.tensor = b}});
  const StoragePlan plan(tape, true, false);
  EXPECT_FALSE(plan.edges_of(2)[0].accumulate);
  EXPECT_TRUE(plan.edges_of(1)[0].accumulate);
  EXPECT_EQ(plan.edges_of(2)[0].gradient, plan.of(a).gradient);
  EXPECT_EQ(plan.edges_of(1)[0].gradient, plan.of(a).gradient);
  EXPECT_EQ(plan.edges_of(1)[0].others, plan.of(a).gradient);
  EXPECT_TRUE(lives(plan, plan.of(a).gradient, 4, 6));
}

TEST(StoragePlan, ASumElsewhereHasMemoryOfItsOwn) {
  Tape tape;
  const TensorId a = append(tape, {});
  const TensorId b = append(tape, {{.tensor = a, .adds_elsewhere = true}});
  append(tape, {{.tensor = a}, {.tensor = b}});
  const StoragePlan plan(tape, true, false);
  const StoragePlan::EdgeStorage& edge = plan.edges_of(1)[0];
  EXPECT_EQ(edge.others, plan.edges_of(2)[0].gradient);
  EXPECT_NE(edge.gradient, edge.others);
  EXPECT_EQ(edge.gradient, plan.of(a).gradient);
  EXPECT_TRUE(lives(plan, edge.others, 4, 5));
  EXPECT_TRUE(lives(plan, edge.gradient, 5, 6));
}

TEST(StoragePlan, GradientsTakeThePlaceOfTheOutputs) {
  Tape tape;
  const TensorId a = append(tape, {}), b = append(tape, {});
  append(tape,
         {{.tensor = a, .gradient_in_place = true}, {.tensor = b, .gradient_in_place = true}});
  for (const bool keep_all : {false, true}) {
    const StoragePlan plan(tape, true, keep_all);
    EXPECT_EQ(plan.of(a).gradient == plan.of(tape.output).gradient, !keep_all);
    EXPECT_NE(plan.of(b).gradient, plan.of(tape.output).gradient);
  }
}

// Two nodes read a; in backward the earlier one comes last. It can mask the sum only if it writes
// that itself, elsewhere.
TEST(StoragePlan, TheLastWriterOfAGradientMasksIt) {
  for (const bool elsewhere : {false, true}) {
    Tape tape;
    const TensorId a = append(tape, {}, {.takes_masked_gradient = true});
    const NodeInput reads_a{.tensor = a, .adds_elsewhere = elsewhere, .masks_gradient = true};
    const TensorId b = append(tape, {reads_a}, {}, /*sums=*/true);
    append(tape, {reads_a, {.tensor = b}});
    const StoragePlan plan(tape, true, false);
    EXPECT_FALSE(plan.edges_of(2)[0].mask);
    EXPECT_EQ(plan.edges_of(1)[0].mask, elsewhere);
    EXPECT_EQ(plan.of(a).gradient_masked, elsewhere);
    EXPECT_EQ(plan.of(a).gradient_sums >= 0, elsewhere);
    EXPECT_EQ(plan.of(a).gradient_sums, plan.edges_of(1)[0].sums);
    if (!elsewhere) continue;
    EXPECT_TRUE(lives(plan, plan.of(a).gradient_sums, 5, 6));
  }
}

TEST(StoragePlan, KeptMemoryIsNotShared) {
  Tape tape;
  TensorId x = append(tape, {});
  for (int i = 0; i < 5; ++i) x = append(tape, {{.tensor = x}});
  StoragePlan shared(tape, false, false), kept(tape, false, true);
  const StorageId own = shared.add({64, 1, 2});
  EXPECT_EQ(kept.add({64, 1, 2}), own);
  shared.place();
  kept.place();
  EXPECT_LT(shared.bytes(), 4 * kBytes);
  EXPECT_GE(kept.bytes(), 6 * kBytes + 64);
  EXPECT_TRUE(lives(shared, own, 1, 2));
  EXPECT_TRUE(lives(kept, own, 0, 12));
  EXPECT_LE(kept.offset(own) + 64, kept.bytes());
}

}  // namespace
}  // namespace rk
