// A chart must show what its series hold: values are read back by the labels of the axes.
#include "retrieval/report/chart.h"

#include "tests/support/messages.h"
#include "tests/support/page.h"
#include "tests/support/random_seed.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <sstream>

namespace rk {
namespace {

PageElement drawn(const Chart& chart) {
  return read_page("<!DOCTYPE html>\n" + chart_figure(chart, "c"));
}

double number_of(const PageElement& element, const char* attribute) {
  return std::stod(element.attribute(attribute));
}

// Maps a position in the drawing to its value by the first and the last label of an axis.
struct Reading {
  double place[2], value[2];
  bool logarithmic;
  double operator()(double at) const {
    const double share = (at - place[0]) / (place[1] - place[0]);
    if (logarithmic) return value[0] * std::pow(value[1] / value[0], share);
    return value[0] + share * (value[1] - value[0]);
  }
};

Reading reading(const PageElement& figure, const std::string& axis, bool logarithmic) {
  std::vector<const PageElement*> labels;
  for (const PageElement* text : find_all(figure, "text", axis)) {
    if (!text->has_class("name")) labels.push_back(text);
  }
  EXPECT_GE(labels.size(), 2U);
  const PageElement &first = *labels.front(), &last = *labels.back();
  const char* key = axis == "tx" ? "x" : "y";
  const double shift = axis == "tx" ? 0 : -4.5;  // a label's baseline lies 4.5 below its line
  return {{number_of(first, key) + shift, number_of(last, key) + shift},
          {std::stod(first.text), std::stod(last.text)},
          logarithmic};
}

// The points of a path that consists of M and L commands.
std::vector<std::pair<double, double>> points_of(const PageElement& path) {
  std::vector<std::pair<double, double>> points;
  std::string d = path.attribute("d");
  for (char& c : d) c = c == 'M' || c == 'L' ? ' ' : c;
  std::istringstream text(d);
  for (double x, y; text >> x >> y;) points.emplace_back(x, y);
  return points;
}

TEST(Chart, PointsAreWhereTheAxesSay) {
  std::mt19937 random(static_cast<unsigned>(random_seed()));
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  for (int round = 0; round < 200; ++round) {
    const bool logarithmic = round % 4 == 0;
    const double scale = std::pow(10.0, uniform(-4, 5)), shift = scale * uniform(-3, 3);
    Series s{.name = "s"};
    const int n = std::uniform_int_distribution(2, 60)(random);
    double x = logarithmic ? 1 : shift;
    for (int i = 0; i < n; ++i) {
      s.x.push_back(x);
      s.y.push_back(shift + scale * uniform(0, 1));
      x = logarithmic ? x * uniform(1.05, 2) : x + scale * uniform(0.1, 1);
    }
    Chart chart{.title = "t",
                .x = {.label = "x", .logarithmic = logarithmic},
                .y = {.label = "y"},
                .series = {s}};
    const PageElement figure = drawn(chart);
    const Reading along = reading(figure, "tx", logarithmic), up = reading(figure, "ty", false);
    const auto paths = find_all(
        figure, [](const PageElement& e) { return e.name == "path" && e.has_class("s0"); });
    ASSERT_EQ(paths.size(), 2U);  // the legend's and the line itself
    const auto points = points_of(*paths[1]);
    ASSERT_EQ(points.size(), s.x.size());
    // Positions are written to a tenth, so each is off by up to 0.05, and so are those of both
    // labels, which may lie closer together than the ends of the axis.
    const double off = 0.2;
    const auto slack = [&](const Reading& read, double at) {
      return std::abs(read(at + off) - read(at - off)) *
             std::max(1.0, 420 / std::abs(read.place[1] - read.place[0]));
    };
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto [px, py] = points[i];
      EXPECT_NEAR(along(px), s.x[i], slack(along, px)) << round;
      EXPECT_NEAR(up(py), s.y[i], slack(up, py)) << round;
    }
    // Each point has a mark, of more than 40 points only every `step`-th; the legend has one, too.
    const std::size_t step = n <= 40 ? 1 : static_cast<std::size_t>(n) / 12;
    EXPECT_EQ(find_all(figure, "circle").size(), (s.x.size() + step - 1) / step + 1);
    // The table has all points, or 256 of them, with four digits.
    const auto rows = find_all(figure, "tr");
    ASSERT_EQ(rows.size(), std::min<std::size_t>(s.x.size(), 256) + 1);
    EXPECT_NEAR(std::stod(rows[1]->children[0].text), s.x.front(), 1e-3 * std::abs(s.x.front()));
    EXPECT_NEAR(std::stod(rows.back()->children[1].text), s.y.back(), 1e-3 * std::abs(s.y.back()));
  }
}

TEST(Chart, TicksAreRoundAndFew) {
  const auto labels = [](const Axis& axis, const std::vector<double>& values) {
    return ChartScale(axis, values).labels();
  };
  using Labels = std::vector<std::string>;
  EXPECT_EQ(labels({}, {0, 1}), (Labels{"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"}));
  EXPECT_EQ(labels({}, {-0.013, 0.021}),
            (Labels{"-0.02", "-0.01", "0.00", "0.01", "0.02", "0.03"}));
  EXPECT_EQ(labels({.whole = true}, {1, 4}), (Labels{"1", "2", "3", "4"}));
  EXPECT_EQ(labels({.whole = true}, {0, 400}), (Labels{"0", "100", "200", "300", "400"}));
  EXPECT_EQ(labels({.logarithmic = true}, {1, 1000}), (Labels{"1", "10", "100", "1000"}));
  EXPECT_EQ(labels({.logarithmic = true}, {1, 30}), (Labels{"1", "2", "5", "10", "20"}));
  // Ranks: each one while they are few; where the curve ends, if its label has room there.
  const Axis ranks{.whole = true, .logarithmic = true};
  EXPECT_EQ(labels(ranks, {1, 4}), (Labels{"1", "2", "3", "4"}));
  EXPECT_EQ(labels(ranks, {1, 30}), (Labels{"1", "2", "5", "10", "20", "30"}));
  EXPECT_EQ(labels(ranks, {1, 400}), (Labels{"1", "10", "100", "400"}));
  EXPECT_EQ(labels(ranks, {1, 105}), (Labels{"1", "10", "100"}));
  EXPECT_EQ(labels(ranks, {1}), (Labels{"1", "2"}));
  // Values that span no scale: none, NaN, a single one.
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(labels({}, {}).front(), "0.0");
  EXPECT_EQ(labels({}, {nan, nan}).back(), "1.0");
  const ChartScale one({}, {0.5});
  EXPECT_LT(one.low(), 0.5);
  EXPECT_GT(one.high(), 0.5);
  const ChartScale end({.high = 1.0}, {1}), begin({.low = 1.0}, {1});  // an end is given
  EXPECT_EQ(end.high(), 1);
  EXPECT_LT(end.low(), 1);
  EXPECT_EQ(begin.low(), 1);
  EXPECT_GT(begin.high(), 1);
  EXPECT_EQ(ChartScale({.logarithmic = true}, {7}).at(7), 0.5);
  EXPECT_EQ(ChartScale({.low = 0.0, .high = 1.0}, {}).at(7), 1.0);
}

// A character takes up to 8 units, and the axis' name the first 22.
TEST(Chart, LabelsStandBesideTheAxisName) {
  for (const double spread : {1.0, 1e-3, 1e-5, 1e-7}) {
    const Series s{.name = "a", .x = {1, 2}, .y = {0.75, 0.75 + spread}};
    const PageElement figure = drawn({.title = "t", .y = {.label = "loss"}, .series = {s}});
    const PageElement& plot = *find_all(figure, "svg", "plot").at(0);
    std::size_t longest = 0;
    for (const PageElement* label : find_all(plot, "text", "ty")) {
      longest = std::max(longest, label->text.size());
      const double end = std::stod(label->attribute("x"));
      EXPECT_GE(end - 8 * static_cast<double>(label->text.size()), 22) << label->text;
      for (const PageElement* mark : find_all(plot, "circle")) {
        EXPECT_GT(std::stod(mark->attribute("cx")), end) << "the plot begins right of its labels";
      }
    }
    EXPECT_GT(longest, spread < 1e-3 ? 6U : 2U);
  }
}

TEST(Chart, BinsReachTheirCounts) {
  Series s{.name = "bins", .x = {-0.5, 0.5}, .y = {1, 3}, .form = Series::Form::kSteps};
  const PageElement figure = drawn({.title = "t",
                                    .x = {.low = -1.0, .high = 1.0},
                                    .y = {.low = 0.0, .high = 3.0},
                                    .series = {s}});
  const auto paths = find_all(figure, "path", "area");
  ASSERT_EQ(paths.size(), 2U);
  // The plot is 314 x 210 at (72, 12): from the bottom to a third, to the top, and down again.
  EXPECT_EQ(paths[1]->attribute("d"), "M72.0 222.0V152.0H229.0V12.0H386.0V222.0");
}

// A histogram's table that leaves bins out has another sum than the chart.
TEST(Chart, TheTableHoldsEveryBinOrSaysHowMany) {
  const auto told = [](int bins) {
    Series s{.name = "bins", .x = {}, .y = {}, .form = Series::Form::kSteps};
    for (int i = 0; i < bins; ++i) {
      s.x.push_back(i);
      s.y.push_back(1);
    }
    const PageElement figure = drawn({.title = "t", .series = {s}});
    return std::pair{find_all(figure, "tr", "").size() - 1, figure.text};
  };
  EXPECT_EQ(told(200).first, 200U);
  EXPECT_FALSE(holds(told(200).second, "The chart's numbers, "));
  EXPECT_EQ(told(300).first, 256U);
  EXPECT_TRUE(holds(told(300).second, "The chart's numbers, 256 of 300"));
}

TEST(Chart, WhatIsNotFiniteIsAGap) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Series s{.name = "s", .x = {0, 1, 2, 3}, .y = {0, nan, 1, 0}};
  const PageElement figure = drawn({.title = "t", .series = {s}});
  const std::string d = find_all(figure, "path", "s0")[1]->attribute("d");
  EXPECT_EQ(std::count(d.begin(), d.end(), 'M'), 2);
  EXPECT_EQ(std::count(d.begin(), d.end(), 'L'), 1);
  EXPECT_FALSE(holds(d, "nan"));
  EXPECT_EQ(find_all(figure, "tr")[2]->children[1].text, "none");
}

// Ends and steps of the axis would be infinite, and the labels without end.
TEST(Chart, NumbersBeyondAnyAxisEndAtIts) {
  const double most = std::numeric_limits<double>::max();
  for (const std::vector<double>& y :
       {std::vector<double>{0, 1.7e308, 1}, {-most, most, 0.5}, {most, most, most}}) {
    const PageElement figure =
        drawn({.title = "t", .series = {{.name = "s", .x = {0, 1, 2}, .y = y}}});
    EXPECT_LE(find_all(figure, "text", "ty").size(), 12U);
    const std::string d = find_all(figure, "path", "s0")[1]->attribute("d");
    EXPECT_EQ(d.find_first_of("nf"), std::string::npos) << d;  // nan, inf
  }
}

// The words for a vertical line are in the legend, where no curve is; over it is only a sign.
TEST(Chart, NoWordsLieAcrossTheData) {
  const Series s{.name = "s", .x = {0, 3}, .y = {0, 1}};
  const PageElement figure =
      drawn({.title = "t",
             .x = {.label = "epoch"},
             .series = {s},
             .marks = {{2, "a, evaluated here", 0}, {2, "b, evaluated here", 1}}});
  const PageElement& plot = *find_all(figure, "svg", "plot").at(0);
  for (const PageElement* text : find_all(plot, "text")) {
    EXPECT_TRUE(text->has_class("tx") || text->has_class("ty")) << text->text;
  }
  const auto entries = find_all(*find_all(figure, "ul", "legend").at(0), "li");
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[2]->text, " b, evaluated here");
  EXPECT_EQ(find_all(*entries[2], "path", "k1").size(), 1U);
  const PageElement& line = *find_all(plot, "path", "k0").at(0);
  const auto points = points_of(line);
  const auto signs = {points_of(*find_all(plot, "path", "m0").at(0)).at(0),
                      points_of(*find_all(plot, "path", "m1").at(0)).at(0)};
  EXPECT_EQ(line.attribute("d"), fmt::format("M{:.1f} 12V222", points.at(0).first));
  for (const auto& [x, y] : signs) EXPECT_LT(y, 12);
  EXPECT_NEAR(signs.begin()->first + 4, points.at(0).first, 0.1);
  // Two of one place stand side by side.
  EXPECT_GE(std::next(signs.begin())->first, signs.begin()->first + 8);
  // They are no points of a series, and say so on hovering.
  EXPECT_EQ(find_all(plot, "circle").size(), 2U);
  EXPECT_EQ(find_all(*find_all(plot, "path", "m0").at(0), "title").at(0)->text,
            "a, evaluated here: epoch 2");
}

// Series must be distinguishable without colours, and by readers who do not see the drawing.
TEST(Chart, IsReadWithoutColoursAndWithoutEyes) {
  Series solid{.name = "a", .x = {0, 1}, .y = {0, 1}};
  Series dashed{.name = "b <i>", .x = {0, 1}, .y = {1, 0}, .colour = 1, .dashed = true};
  const PageElement figure =
      drawn({.title = "A & B", .description = "What to see", .series = {solid, dashed}});
  EXPECT_EQ(find_all(figure, "path", "dashed").size(), 2U);
  EXPECT_EQ(find_all(figure, "circle").size(), 3U);
  EXPECT_EQ(find_all(figure, "rect").size(), 3U);
  const PageElement& plot = *find_all(figure, "svg", "plot").at(0);
  EXPECT_EQ(plot.attribute("role"), "img");
  EXPECT_EQ(plot.attribute("aria-labelledby"), "c-t c-d");
  EXPECT_EQ(find_all(plot, "title").at(0)->text, "A & B");
  EXPECT_EQ(find_all(plot, "desc").at(0)->text, "What to see");
  EXPECT_EQ(find_all(figure, "th").at(2)->text, "b <i>");
}

}  // namespace
}  // namespace rk
