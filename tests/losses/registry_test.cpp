#include "losses/registry.h"

#include "engine/base/error.h"
#include "tests/kernel_cases/row_cases.h"
#include "tests/support/messages.h"

#include <gtest/gtest.h>

#include <set>
#include <typeindex>

namespace rk {
namespace {

std::string complaint(const std::string& spec) {
  return message_if_any<UsageError>([&] { (void)parse_loss(spec); });
}

TEST(LossRegistry, ParsesNameAndParameters) {
  const LossSpec spec = parse_loss("smooth_ap:tau=0.05,compat=official");
  EXPECT_EQ(spec.entry->name, "smooth_ap");
  EXPECT_EQ(spec.values.number("tau"), 0.05);
  EXPECT_TRUE(spec.values.is("compat", "official"));
  EXPECT_EQ(spec.text(), "smooth_ap:tau=0.05,compat=official");
  EXPECT_EQ(parse_loss("fastap").text(), "fastap:bins=10,compat=paper");
}

TEST(LossRegistry, SuggestsTheNearestNames) {
  EXPECT_EQ(complaint("smothap"), "smothap: no such loss; did you mean smooth_ap?");
  EXPECT_EQ(complaint("smooth_ap,tau=0.01"),
            "smooth_ap,tau=0.01: parameters stand behind a colon: smooth_ap:tau=0.01");
  EXPECT_EQ(complaint("fastap:bin=3"), "fastap: no such parameter: bin; did you mean bins?");
  EXPECT_EQ(complaint("fastap:compat=oficial"),
            "fastap: compat=oficial is not a choice; did you mean official?");
}

TEST(LossRegistry, KnowsWhatOtherLibrariesCallThem) {
  for (const auto& [theirs, ours] :
       {std::pair{"SmoothAPLoss", "smooth_ap"}, std::pair{"FastAPLoss", "fastap"},
        std::pair{"MultiSimilarityLoss", "multi_similarity"}, std::pair{"proxy_nca", "nsl"},
        std::pair{"NormalizedSoftmaxLoss", "nsl"}, std::pair{"TripletMarginLoss", "triplet_ba"},
        std::pair{"PNPLoss", "pnp_o or pnp_iu or pnp_ib"}}) {
    EXPECT_EQ(complaint(theirs), fmt::format("{}: no such loss; did you mean {}?", theirs, ours));
  }
}

TEST(LossRegistry, SaysWhichParametersHaveNoEffect) {
  using Lines = std::vector<std::string>;
  const auto lines = [](const char* spec) { return parse_loss(spec).without_effect; };
  EXPECT_EQ(lines("triplet_bh:soft=1,margin=0.2"), Lines({"margin: has no effect with soft=1"}));
  EXPECT_EQ(lines("triplet_bh:margin=0.2"), Lines());
  EXPECT_EQ(lines("triplet_ba:soft=1"), Lines());
  EXPECT_EQ(lines(parse_loss("triplet_ba:soft=1").text().c_str()), Lines());
  EXPECT_EQ(lines("multi_similarity:mining=0,epsilon=0.5"),
            Lines({"epsilon: has no effect with mining=0"}));
  EXPECT_TRUE(
      holds(describe_loss(*parse_loss("triplet_bh").entry), "default 0.3; no effect with soft=1)"));
}

TEST(LossRegistry, RefusesWhatCannotBe) {
  for (const char* spec : {"", ":", "fastap:bins", "fastap:bins=", "fastap:bins=2.5",
                           "fastap:bins=0", "fastap:bins=1e9", "fastap:bins=10x", "fastap:bins=nan",
                           "fastap:bins=3,bins=4", "fastap:bins=3,", "fastap:=3", "smooth_ap:tau=0",
                           "smooth_ap:tau=inf", "smooth_ap:tau=-1"}) {
    EXPECT_NE(complaint(spec), "") << spec;
  }
}

TEST(LossRegistry, EveryEntryIsCompleteAndItsDefaultsAreValid) {
  std::set<std::string> names;
  for (const LossEntry& entry : loss_registry()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_FALSE(entry.summary.empty()) << entry.name;
    EXPECT_FALSE(entry.paper.empty()) << entry.name;
    // Spelled out, the defaults go through the same checks as a user's values.
    EXPECT_EQ(complaint(parse_loss(entry.name).text()), "") << entry.name;
    const std::string text = describe_loss(entry);
    for (const LossParameter& parameter : entry.parameters) {
      EXPECT_FALSE(parameter.meaning.empty()) << entry.name << " " << parameter.name;
      EXPECT_TRUE(holds(text, "    " + parameter.name + " "));
    }
  }
}

// The cases of tests/kernel_cases/row_cases.h, against the rows compiled for GPUs and the
// registered losses.
struct RowsOfCases {
  std::set<std::type_index> rows;
  std::set<std::string> names;
};

RowsOfCases rows_of_cases() {
  RowsOfCases out;
  for_each_row_case([&]<template <class> class Row>(const char* name, const auto&) {
    out.rows.insert(typeid(Row<float>));
    EXPECT_TRUE(out.names.insert(name).second) << name << " is there twice";
  });
  return out;
}

TEST(RowCases, EveryRowHasOne) {
  const RowsOfCases cases = rows_of_cases();
#define RK_HAS_CASE(Row) \
  EXPECT_TRUE(cases.rows.contains(typeid(Row<float>))) << #Row " has no case in row_cases.h"
  RK_HISTOGRAM_ROWS(RK_HAS_CASE);
  RK_PAIR_ROWS(RK_HAS_CASE);
  RK_RANK_ROWS(RK_HAS_CASE);
  RK_PROXY_ROWS(RK_HAS_CASE);
#undef RK_HAS_CASE
}

TEST(RowCases, EveryRegisteredLossOnRowsHasOne) {
  const RowsOfCases cases = rows_of_cases();
  for (const LossEntry& entry : loss_registry()) {
    if (entry.kind == LossKind::kScores) continue;  // sorts whole rows: no row kernel
    EXPECT_TRUE(cases.names.contains(entry.name))
        << entry.name << " has no case in tests/kernel_cases/row_cases.h";
  }
}

}  // namespace
}  // namespace rk
