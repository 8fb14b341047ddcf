#include "engine/base/nearest.h"

#include "engine/base/error.h"
#include "tests/support/messages.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rk {
namespace {

const std::vector<std::string> kLosses = {"fastap", "smooth_ap", "recall_at_k", "triplet"};

TEST(Nearest, DistanceCountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);  // the textbook's example
  EXPECT_EQ(edit_distance("slos", "loss"), 2);       // moved by two: no single swap
  EXPECT_EQ(edit_distance("form", "from"), 1);       // one swap
  EXPECT_EQ(edit_distance("Smooth-AP", "smooth_ap"), 0);
  EXPECT_EQ(edit_distance("SmoothAP", "smooth_ap"), 0);
  EXPECT_EQ(edit_distance("--lr", "lr"), 2);
}

TEST(Nearest, DistanceIsSymmetric) {
  EXPECT_EQ(edit_distance("fastap", "smooth_ap"), edit_distance("smooth_ap", "fastap"));
}

TEST(Nearest, FindsTheNameMeant) {
  EXPECT_EQ(nearest("smoothap", kLosses).front(), "smooth_ap");
  EXPECT_EQ(nearest("fast_ap", kLosses).front(), "fastap");
  EXPECT_EQ(nearest("recall", kLosses).front(), "recall_at_k");
  EXPECT_EQ(nearest("SmoothAPLoss", kLosses).front(), "smooth_ap");
}

TEST(Nearest, NearestComesFirst) {
  const std::vector<std::string> names = {"--batches", "--batch", "--bath"};
  EXPECT_EQ(nearest("--bacth", names).front(), "--batch");
}

TEST(Nearest, FarNamesAreNotSuggested) {
  EXPECT_TRUE(nearest("xyzzy", kLosses).empty());
  EXPECT_TRUE(nearest("", kLosses).empty());
  EXPECT_TRUE(nearest("fastap" + std::string(1 << 20, 'a'), kLosses).empty());
}

TEST(Nearest, LimitHolds) {
  const std::vector<std::string> names = {"aaa1", "aaa2", "aaa3", "aaa4"};
  EXPECT_EQ(nearest("aaa0", names, 2), (std::vector<std::string>{"aaa1", "aaa2"}));
}

TEST(Nearest, SuggestionSaysWhatIsKnownWhereNothingIsNear) {
  EXPECT_EQ(suggestion("smothap", kLosses), "did you mean smooth_ap?");
  EXPECT_EQ(suggestion("q", {"avg", "max"}), "known: avg, max");
}

TEST(Nearest, AKeyThatIsNotKnownIsRefused) {
  const std::vector<std::string> known = {"bins", "compat"};
  require_known("fastap", "no such parameter: {}", "bins", known);
  const auto complaint = [](const char* key, const std::vector<std::string>& keys) {
    return message_of<UsageError>([&] { require_known("fastap", "no key '{}'", key, keys); });
  };
  EXPECT_EQ(complaint("bin", known), "fastap: no key 'bin'; did you mean bins?");
  EXPECT_EQ(complaint("tau", known), "fastap: no key 'tau'; known: bins, compat");
  EXPECT_EQ(complaint("Bins", known), "fastap: no key 'Bins'; did you mean bins?");
  EXPECT_EQ(complaint("bins", {}), "fastap: no key 'bins'; it has none");
}

}  // namespace
}  // namespace rk
