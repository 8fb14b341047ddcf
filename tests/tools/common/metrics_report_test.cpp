#include "tools/common/metrics_report.h"

#include <gtest/gtest.h>

namespace rk {
namespace {

TEST(MetricsReport, TheProtocolSaysWhatIsRemovedAndHowTiesCount) {
  Metrics metrics;
  EXPECT_EQ(protocol_text(metrics),
            "against themselves, self removed by index; inner product as given; ties count against "
            "the query");
  metrics.ties_exact = false;
  metrics.camera_rule = true;
  EXPECT_EQ(protocol_text(metrics),
            "against themselves, same label and camera removed; inner product as given; ties count "
            "against the query (up to rounding: equal rows may differ in the last bit here)");
  metrics.self_retrieval = false;
  EXPECT_EQ(protocol_text(metrics),
            "against the gallery, same label and camera removed; inner product as given; ties "
            "count against the query (up to rounding: equal rows may differ in the last bit here)");
}

}  // namespace
}  // namespace rk
