// Compares what the product computed with data sets of a golden file, by the file's own pass rule
// (tests/golden/networks): |got - value| <= tolerance, with one tolerance for the data set or one a
// row. Two of the sixteen samples in a row of a table may exceed it, but none `tolerance_worst`.
// NaN fails.
#pragma once

#include "weights/hdf5/file.h"

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rk::golden {

class Comparison {
 public:
  // Tolerances are the file's times `slack`.
  explicit Comparison(const Hdf5Reader& file, double slack = 1) : file_(file), slack_(slack) {}

  // Compares every element of `dataset`; `part` names the comparison in the detail.
  void compare(const std::string& part, const std::string& dataset, std::span<const double> got);

  // Compares a table. `tensor(name)` returns a row's tensor in PyTorch's order of elements: a wrong
  // number of elements fails, nullopt skips the row. `initial(name)` returns the tensor before the
  // step; needed if the table holds update_norm.
  using Row = std::optional<std::vector<double>>;
  using Lookup = std::function<Row(const std::string& name)>;
  void compare_table(const std::string& part, const std::string& group, const Lookup& tensor,
                     const Lookup& initial = {});

  // Fails and reports `what` unless `holds`.
  void require(bool holds, const std::string& what);

  bool passed() const { return passed_; }
  // "features 1.2e-07/3.4e-06 grad 2.0e-05/1.9e-05 (layer1.0.conv1.weight norm)": for each part the
  // deviation and tolerance of the element with the largest share of its tolerance.
  std::string detail() const;

 private:
  struct Worst {
    double share = -1;  // deviation / tolerance
    double deviation = 0;
    double tolerance = 0;
    std::string where;
  };
  void note(const std::string& part, double deviation, double tolerance, const std::string& where);

  const Hdf5Reader& file_;
  double slack_;
  std::vector<std::string> order_;  // of parts
  std::map<std::string, Worst> worst_;
  std::vector<std::string> broken_;
  bool passed_ = true;
};

}  // namespace rk::golden
