#include "tests/race/cases.h"

#include "kernels/fastap_row.h"
#include "kernels/pnp_row.h"
#include "kernels/rambo_row.h"
#include "kernels/smooth_ap_row.h"
#include "tests/race/problem.h"
#include "tests/race/thread_team.h"

namespace rk::race {
namespace {

// Sums over members are added in another order than over lanes: double rounds to 1e-16, the rows add up
// to 27 terms and divide by sums that may be 1e-3 of their terms.
constexpr double kSumOrder = 1e-11;

// A kernel of the form row(team, params, gallery row, grad, loss, scratch), its gradient written where
// its scores were.
template <class Row>
class GalleryRun final : public Case::Run {
 public:
  GalleryRun(const typename Row::Params& params, std::int64_t scratch)
      : params_(params), grad_(problem_.scores()), losses_(Problem<double>::kRows), scratch_(scratch) {}

  void serial(const SerialTeam& team) override { rows(team); }
  void threads(const ThreadTeam& team) override { rows(team); }
  std::vector<double> written() const override {
    std::vector<double> out = losses_;
    for (int i = 0; i < Problem<double>::kRows; ++i) {
      for (int j = 0; j < Problem<double>::kColumns; ++j) {
        out.push_back(grad_[static_cast<std::size_t>(i * pad(Problem<double>::kColumns) + j)]);
      }
    }
    return out;
  }

 private:
  template <class Team>
  void rows(const Team& team) {
    for (int query = 0; query < Problem<double>::kRows; ++query) {
      if (!problem_.has_positive(query)) continue;
      GalleryRow<double> in = problem_.row(query);
      double* place = grad_.data() + query * pad(Problem<double>::kColumns);
      in.scores = place;
      Row::row(team, params_, in, place, &losses_[static_cast<std::size_t>(query)],
               scratch_.data());
      // The next row is another launch on a GPU; here it takes the same scratch. What it finds there
      // must not matter, so only the barrier stays that a launch implies.
      team.sum(1, [](int) { return 0.0; });
    }
  }

  Problem<double> problem_;
  typename Row::Params params_;
  std::vector<double> grad_;
  std::vector<double> losses_;
  NanMemory scratch_;
};

template <class Row>
Case gallery_case(const std::string& name, const typename Row::Params& params,
                  std::int64_t scratch) {
  return {name, [=] { return std::make_unique<GalleryRun<Row>>(params, scratch); }, kSumOrder};
}

constexpr int kColumns = Problem<double>::kColumns;

}  // namespace

const std::vector<Case>& cases() {
  static const std::vector<Case> list = {
      gallery_case<FastApRow<double>>("fastap", {.bins = 7},
                                      FastApRow<double>::scratch({.bins = 7}, kColumns, kColumns)),
      gallery_case<SmoothApRow<double>>("smooth_ap", {.tau = 0.05, .with_self = false},
                                        SmoothApRow<double>::scratch(kColumns, kColumns)),
      gallery_case<SmoothApRow<double>>("smooth_ap_official", {.tau = 0.05, .with_self = true},
                                        SmoothApRow<double>::scratch(kColumns, kColumns)),
      gallery_case<PnpRow<double>>("pnp", {.variant = Pnp::kIb, .tau = 0.05},
                                   PnpRow<double>::scratch(kColumns, kColumns)),
      gallery_case<RamboRow<double>>("rambo_ap", {.variant = Rambo::kAp, .lambda = 0.2},
                                     RamboRow<double>::scratch(kColumns, kColumns)),
      gallery_case<RamboRow<double>>("rambo_recall", {.variant = Rambo::kRecallLog, .lambda = 0.2},
                                     RamboRow<double>::scratch(kColumns, kColumns)),
  };
  return list;
}

}  // namespace rk::race
