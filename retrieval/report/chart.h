// Charts as readable SVG: axes with round numbers, and next to each chart its legend and its
// numbers as a table. Colours are CSS variables of the page (retrieval/report/style.h), so that one
// drawing serves light mode, dark mode and paper; series also differ by dashes and marks.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rk {

struct Series {
  enum class Form {
    kLine,   // through the points, with marks if there are few
    kSteps,  // bins of equal width around each x, filled down to the axis
  };
  std::string name{};
  std::vector<double> x{}, y{};  // ascending x; a y that is not finite leaves a gap
  int colour = 0;                // 0 to 3
  bool dashed = false;
  Form form = Form::kLine;
};

struct Axis {
  std::string label{};
  bool whole = false;                   // whole numbers only: epochs, ranks
  bool logarithmic = false;             // all values must be above 0
  std::optional<double> low{}, high{};  // if not given: round numbers around the data
};

// A vertical line. The legend has its label.
struct ChartMark {
  double x;
  std::string label;
  int colour = 0;  // 0 to 3
};

struct Chart {
  std::string title{};
  std::string description{};  // what the chart shows: text for readers who cannot see the drawing
  Axis x{}, y{};
  std::vector<Series> series{};
  std::vector<ChartMark> marks{};
};

// Positions of values along an axis, as a share of its length; values beyond an end go to that end.
class ChartScale {
 public:
  // values: the values to show. If none is finite, the scale is 0 to 1 (1 to 10 if logarithmic).
  ChartScale(const Axis& axis, const std::vector<double>& values);
  double at(double value) const;
  double low() const { return low_; }
  double high() const { return high_; }
  const std::vector<double>& ticks() const { return ticks_; }
  const std::vector<std::string>& labels() const { return labels_; }  // of the ticks

 private:
  void linear(const Axis& axis);
  void logarithmic(bool whole);
  void label_end();
  void add_ticks(double step);

  bool logarithmic_;
  double low_ = 0, high_ = 1;
  std::vector<double> ticks_;
  std::vector<std::string> labels_;
};

// A <figure>; `id` names it and is unique in the page.
std::string chart_figure(const Chart& chart, const std::string& id);

}  // namespace rk
