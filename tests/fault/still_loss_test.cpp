// A loss that no longer changes, as when all embeddings have collapsed to one point, must be
// reported once.
#include "tests/tools/train/train_program.h"

namespace rk {
namespace {

class StillLoss : public TrainProgram {
 protected:
  // Trains `steps` steps in two epochs, without augmentation, and returns what was said.
  std::string notes_of(const std::string& data, int steps) const {
    const std::string out = fmt::format("{}{}", data, steps);
    const Finished done = run(
        command(out, {"--data", "folder:" + in(data), "--augment", "none", "--loss", "triplet_bh"},
                steps / 2));
    EXPECT_EQ(done.code, 0) << done.err;
    return done.err;
  }
};

// The pictures of all four classes are equal and so have one embedding; the loss is the margin.
TEST_F(StillLoss, IsSaidOnceAtTheMarginAndNotWhereBatchesDiffer) {
  for (int c = 0; c < 4; ++c) {
    for (int i = 0; i < 4; ++i) folder_.picture(fmt::format("same/train/c{}/{}.png", c, i), 1);
  }
  folder_.classes("same/test/t", 2, 2);
  folder_.classes("other/train/c", 8, 8);
  folder_.classes("other/test/t", 2, 2);
  const std::string words = "the loss has been 0.3000 for 100 batches on end";
  const std::string notes = notes_of("same", 120);
  EXPECT_TRUE(holds(notes, "step 100: " + words));
  EXPECT_EQ(notes.find(words), notes.rfind(words)) << notes;
  EXPECT_EQ(notes_of("same", 98).find("on end"), std::string::npos);
  EXPECT_EQ(notes_of("other", 120).find("on end"), std::string::npos);
}

}  // namespace
}  // namespace rk
