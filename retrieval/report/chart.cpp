#include "retrieval/report/chart.h"

#include "retrieval/report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace rk {
namespace {

// Size of the drawing in its own units: text of size 14 stays readable on a phone and in three
// columns, where 400 units are some 350 pixels.
constexpr double kWidth = 400, kHeight = 270;
constexpr double kLeast = 72, kRight = 14, kTop = 12, kBottom = 48;
constexpr double kPlotHeight = kHeight - kTop - kBottom;
// Left of the plot: the axis' name, and a character of a label.
constexpr double kName = 29, kCharacter = 8;
constexpr std::size_t kMostMarks = 40;  // a series of up to so many points has a mark on each
constexpr std::size_t kFewMarks = 12;   // about so many marks on a series of more points
constexpr std::size_t kMostRows = 256;  // of a table
constexpr double kSlack = 1e-6;         // of a step: 0.6 is not exactly 3 steps of 0.2
constexpr double kSignWidth = 9;        // of the sign over a vertical line
constexpr double kLargest = 1e300;      // on an axis: its ends and steps must not overflow
// Shares of an axis: what one digit of a label takes, and what keeps two labels apart.
constexpr double kDigit = 0.025, kApart = 0.025;

// 1, 2 or 5 times a power of ten: the smallest step with at most `count` of them in `range`.
double round_step(double range, double count) {
  const double power = std::pow(10.0, std::floor(std::log10(range / count)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (range / (factor * power) <= count * (1 + 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::string label_of(double value, int decimals) {
  const std::string text = fmt::format("{:.{}f}", value, decimals);
  return text.find_first_not_of("-0.") == std::string::npos ? fmt::format("{:.{}f}", 0.0, decimals)
                                                            : text;
}

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:.4g}", value) : std::string("none");
}

struct Frame {
  Frame(ChartScale across, ChartScale up) : x(std::move(across)), y(std::move(up)) {
    for (const std::string& label : y.labels()) {
      begin = std::max(begin, kName + kCharacter * static_cast<double>(label.size()));
    }
  }
  ChartScale x, y;
  double begin = kLeast;  // of the plot, wide enough for the labels of y
  double width() const { return kWidth - kRight - begin; }
  double left(double value) const { return begin + width() * x.at(value); }
  double top(double value) const { return kTop + kPlotHeight * (1 - y.at(value)); }
};

std::string line_path(const Series& s, const Frame& frame) {
  std::string path;
  bool open = false;
  for (std::size_t i = 0; i < s.x.size(); ++i) {
    if (!std::isfinite(s.y[i])) {
      open = false;
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", open ? "L" : "M", frame.left(s.x[i]), frame.top(s.y[i]));
    open = true;
  }
  return path;
}

std::string steps_path(const Series& s, const Frame& frame) {
  if (s.x.empty()) return "";
  const double half = s.x.size() > 1 ? (s.x[1] - s.x[0]) / 2 : 0.5;
  const double base = frame.top(frame.y.low());
  std::string path = fmt::format("M{:.1f} {:.1f}", frame.left(s.x.front() - half), base);
  for (std::size_t i = 0; i < s.x.size(); ++i) {
    path += fmt::format("V{:.1f}H{:.1f}", std::isfinite(s.y[i]) ? frame.top(s.y[i]) : base,
                        frame.left(s.x[i] + half));
  }
  return path + fmt::format("V{:.1f}", base);
}

// A circle; a square for every second colour.
std::string mark(int colour, double x, double y, const std::string& title) {
  if (colour % 2 == 0) {
    return fmt::format(R"(<circle class="m{}" cx="{:.1f}" cy="{:.1f}" r="3.2">{}</circle>)", colour,
                       x, y, title);
  }
  return fmt::format(R"(<rect class="m{}" x="{:.1f}" y="{:.1f}" width="6" height="6">{}</rect>)",
                     colour, x - 3, y - 3, title);
}

// A triangle that points down, unlike any mark of a point; a lozenge for every second colour.
std::string pointer(int colour, double x, double y, const std::string& title) {
  return fmt::format(R"(<path class="m{}" d="M{:.1f} {:.1f}{}">{}</path>)", colour, x - 4, y - 3,
                     colour % 2 == 0 ? "h8l-4 7z" : "l4-4 4 4-4 4z", title);
}

// Marks on every point, or on some if there are many; the browser shows a mark's title on hovering.
std::string marks(const Series& s, const Frame& frame) {
  std::string out;
  const std::size_t step = s.x.size() <= kMostMarks ? 1 : s.x.size() / kFewMarks;
  for (std::size_t i = 0; i < s.x.size(); i += step) {
    if (!std::isfinite(s.y[i])) continue;
    out += mark(
        s.colour, frame.left(s.x[i]), frame.top(s.y[i]),
        fmt::format("<title>{}: {}, {}</title>", escaped(s.name), number(s.x[i]), number(s.y[i])));
  }
  return out;
}

std::string drawn(const Series& s, const Frame& frame) {
  const bool steps = s.form == Series::Form::kSteps;
  const std::string path =
      fmt::format(R"(<path class="s{}{}{}" d="{}"/>)", s.colour, s.dashed ? " dashed" : "",
                  steps ? " area" : "", steps ? steps_path(s, frame) : line_path(s, frame));
  return fmt::format("{}{}\n", path, steps ? std::string() : marks(s, frame));
}

std::string axes(const Chart& chart, const Frame& frame) {
  std::string out;
  const double bottom = kTop + kPlotHeight, right = kWidth - kRight;
  for (std::size_t i = 0; i < frame.y.ticks().size(); ++i) {
    const double y = frame.top(frame.y.ticks()[i]);
    out += fmt::format(
        R"(<path class="grid" d="M{} {:.1f}H{}"/><text class="ty" x="{}" y="{:.1f}">{}</text>)",
        frame.begin, y, right, frame.begin - 7, y + 4.5, frame.y.labels()[i]);
  }
  for (std::size_t i = 0; i < frame.x.ticks().size(); ++i) {
    const double x = frame.left(frame.x.ticks()[i]);
    out += fmt::format(
        R"(<path class="grid" d="M{:.1f} {}V{}"/><text class="tx" x="{:.1f}" y="{}">{}</text>)", x,
        kTop, bottom, x, bottom + 18, frame.x.labels()[i]);
  }
  out += fmt::format(R"(<path class="axis" d="M{} {}V{}H{}"/>)", frame.begin, kTop, bottom, right);
  out += fmt::format(R"(<text class="tx name" x="{}" y="{}">{}</text>)",
                     frame.begin + frame.width() / 2, kHeight - 8, escaped(chart.x.label));
  out += fmt::format(
      R"svg(<text class="tx name" transform="translate(14 {}) rotate(-90)">{}</text>)svg",
      kTop + kPlotHeight / 2, escaped(chart.y.label));
  return out + "\n";
}

// Vertical lines under their signs, which the legend explains: words would lie across the data.
std::string chart_marks(const Chart& chart, const Frame& frame) {
  std::string out;
  std::map<double, int> there;  // signs of one place stand side by side
  for (const ChartMark& at : chart.marks) {
    const double x = frame.left(at.x);
    out += fmt::format(R"(<path class="mark k{}" d="M{:.1f} {}V{}"/>)", at.colour, x, kTop,
                       kTop + kPlotHeight);
    out += pointer(at.colour, x + kSignWidth * there[at.x]++, kTop / 2,
                   fmt::format("<title>{}: {} {}</title>", escaped(at.label),
                               escaped(chart.x.label), number(at.x))) +
           "\n";
  }
  return out;
}

std::string legend(const Chart& chart) {
  std::string out = "<ul class=\"legend\">";
  for (const Series& s : chart.series) {
    const char* dashed = s.dashed ? " dashed" : "";
    const bool steps = s.form == Series::Form::kSteps;
    out += fmt::format(R"(<li><svg width="30" height="14" viewBox="0 0 30 14" aria-hidden="true">)"
                       R"(<path class="s{}{}{}" d="{}"/>{}</svg> {}</li>)",
                       s.colour, dashed, steps ? " area" : "", steps ? "M2 12V3H28V12Z" : "M1 7H29",
                       steps ? std::string() : mark(s.colour, 15, 7, ""), escaped(s.name));
  }
  for (const ChartMark& at : chart.marks) {
    out += fmt::format(R"(<li><svg width="30" height="14" viewBox="0 0 30 14" aria-hidden="true">)"
                       R"(<path class="mark k{}" d="M15 4V14"/>{}</svg> {}</li>)",
                       at.colour, pointer(at.colour, 15, 4, ""), escaped(at.label));
  }
  return out + "</ul>\n";
}

// Every x of the chart's points, in order.
std::vector<double> all_x(const Chart& chart) {
  std::vector<double> all;
  for (const Series& s : chart.series) all.insert(all.end(), s.x.begin(), s.x.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// The x of the table's rows: at most kMostRows of them all.
std::vector<double> table_rows(const std::vector<double>& all) {
  if (all.size() <= kMostRows) return all;
  std::vector<double> some;
  for (std::size_t i = 0; i < kMostRows; ++i) {
    some.push_back(all[i * (all.size() - 1) / (kMostRows - 1)]);
  }
  return some;
}

std::string table(const Chart& chart) {
  const std::vector<double> all = all_x(chart), rows = table_rows(all);
  std::string out =
      "<details class=\"numbers\"><summary>The chart's numbers" +
      (rows.size() < all.size() ? fmt::format(", {} of {}", rows.size(), all.size()) : "") +
      "</summary>"
      "<div class=\"wide\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"Table\"><table><thead><tr><th scope=\"col\">";
  out += escaped(chart.x.label) + "</th>";
  std::vector<std::map<double, double>> values;
  for (const Series& s : chart.series) {
    out += fmt::format("<th scope=\"col\">{}</th>", escaped(s.name));
    auto& of = values.emplace_back();
    for (std::size_t i = 0; i < s.x.size(); ++i) of[s.x[i]] = s.y[i];
  }
  out += "</tr></thead><tbody>\n";
  for (const double x : rows) {
    out += fmt::format("<tr><th scope=\"row\">{}</th>", number(x));
    for (const auto& of : values) {
      const auto found = of.find(x);
      out += fmt::format("<td>{}</td>", found == of.end() ? std::string() : number(found->second));
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div></details>\n";
}

}  // namespace

ChartScale::ChartScale(const Axis& axis, const std::vector<double>& values)
    : logarithmic_(axis.logarithmic) {
  low_ = std::numeric_limits<double>::infinity();
  high_ = -low_;
  for (const double value : values) {
    if (!(std::abs(value) <= kLargest) || (logarithmic_ && value <= 0)) continue;
    low_ = std::min(low_, value);
    high_ = std::max(high_, value);
  }
  if (low_ > high_) {
    low_ = logarithmic_ ? 1 : 0;
    high_ = logarithmic_ ? 10 : 1;
  }
  if (axis.low) low_ = *axis.low;
  if (axis.high) high_ = *axis.high;
  if (high_ <= low_) {
    // A single value goes to the middle, but not beyond an end that is given.
    if (logarithmic_) {
      low_ /= 2;
      high_ = 4 * low_;
    } else {
      const double value = low_, half = std::max(std::abs(value) * 0.1, 0.5);
      if (!axis.high) high_ = value + half;
      if (!axis.low) low_ = value - half;
    }
  }
  if (logarithmic_) {
    logarithmic(axis.whole);
  } else {
    linear(axis);
  }
}

void ChartScale::linear(const Axis& axis) {
  const double fine = round_step(high_ - low_, 6);
  const double step = axis.whole ? std::max(1.0, fine) : fine;
  if (!axis.low) low_ = std::floor(low_ / step + kSlack) * step;
  if (!axis.high) high_ = std::ceil(high_ / step - kSlack) * step;
  add_ticks(step);
}

void ChartScale::add_ticks(double step) {
  const int decimals = std::max(0, -static_cast<int>(std::floor(std::log10(step) + kSlack)));
  const double first = std::ceil(low_ / step - kSlack);
  for (int k = 0; (first + k) * step <= high_ + kSlack * step; ++k) {
    ticks_.push_back((first + k) * step);
    labels_.push_back(label_of(ticks_.back(), decimals));
  }
}

void ChartScale::logarithmic(bool whole) {
  if (whole && high_ <= 10) {
    add_ticks(1);
    return;
  }
  const bool few = std::log10(high_ / low_) < 2;
  const auto decade = [](double value) { return static_cast<int>(std::floor(std::log10(value))); };
  for (int exponent = decade(low_); exponent <= decade(high_); ++exponent) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = factor * std::pow(10.0, exponent);
      if ((factor > 1 && !few) || tick < low_ * (1 - 1e-9) || tick > high_ * (1 + 1e-9)) continue;
      ticks_.push_back(tick);
      labels_.push_back(fmt::format("{:g}", tick));
    }
  }
  if (ticks_.size() > 1) {
    if (whole) label_end();
    return;
  }
  ticks_.clear();
  labels_.clear();
  add_ticks(round_step(high_ - low_, 6));
}

// Curves of counts end at a number that says something: it has a label if there is room for one.
void ChartScale::label_end() {
  const std::string label = label_of(high_, 0);
  const double taken = kApart + kDigit * static_cast<double>(label.size());
  if (at(high_) - at(ticks_.back()) < taken) return;
  ticks_.push_back(high_);
  labels_.push_back(label);
}

double ChartScale::at(double value) const {
  const double share = logarithmic_ ? std::log(value / low_) / std::log(high_ / low_)
                                    : (value - low_) / (high_ - low_);
  return std::clamp(share, 0.0, 1.0);
}

std::string chart_figure(const Chart& chart, const std::string& id) {
  std::vector<double> xs, ys;
  for (const Series& s : chart.series) {
    xs.insert(xs.end(), s.x.begin(), s.x.end());
    ys.insert(ys.end(), s.y.begin(), s.y.end());
  }
  const Frame frame{ChartScale(chart.x, xs), ChartScale(chart.y, ys)};
  std::string out = fmt::format("<figure class=\"chart\" id=\"{}\">\n<figcaption>{}</figcaption>\n",
                                id, escaped(chart.title));
  out += legend(chart);
  out += fmt::format(
      R"(<svg class="plot" viewBox="0 0 {} {}" role="img" aria-labelledby="{}-t {}-d">)"
      R"(<title id="{}-t">{}</title><desc id="{}-d">{}</desc>)",
      kWidth, kHeight, id, id, id, escaped(chart.title), id, escaped(chart.description));
  out += axes(chart, frame) + chart_marks(chart, frame);
  for (const Series& s : chart.series) out += drawn(s, frame);
  out += "</svg>\n";
  if (!chart.description.empty()) {
    out += fmt::format("<p class=\"remark\">{}</p>\n", escaped(chart.description));
  }
  return out + table(chart) + "</figure>\n";
}

}  // namespace rk
