// The table of which library engine runs which graph on one kind of GPU: a text file with one line
// per graph. Other engines may change the last bits, so a run records which table it has.
//
//   # NVIDIA H200, cuDNN 91900
//   fp16 conv 128x56x56x64 -> 64, 3x3/1<TAB>eng62_k2=...<TAB>0.071 ms of 0.085
#pragma once

#include "engine/device/precision.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rk {

// The largest difference between two engines' results that is no fault, as gpu::relative_error()
// (layers/graphs/trial.h): engines sum in different orders, and round the sum to the precision's
// type (half a unit of 11, 8 or 24 bits, and some for sums).
double agreement(Precision precision);

// The order in which engines are worth timing, from their names ("eng62_k2=4_k13=0": number and
// settings), given in the heuristics' order: the first few, then two settings of each engine
// further down, then the others. A list mostly begins with many settings of one engine.
std::vector<std::size_t> engines_to_time(const std::vector<std::string>& names);

class GpuPlans {
 public:
  // Used in place of an engine: our own kernels compute the graph, or the part of it that is fused
  // with other work.
  static constexpr std::string_view kOwnKernels = "own kernels";

  // The measurements of one graph's engines.
  struct Timing {
    struct Engine {
      std::string name;
      double ms = 0;     // median
      double error = 0;  // gpu::relative_error() from the first engine's result
      bool agrees = true;
    };
    std::string graph;
    std::vector<Engine> engines;  // in the heuristics' order
    std::size_t taken = 0;
  };

  GpuPlans() = default;
  explicit GpuPlans(std::string environment) : environment_(std::move(environment)) {}
  // Throws InputError naming the file and line if the file is malformed.
  static GpuPlans read(const std::string& path);
  std::string text() const;  // in the format that read() takes

  const std::string& environment() const { return environment_; }
  bool empty() const { return entries_.empty(); }
  void add(const Timing& timing);
  void add(const std::string& graph, const std::string& engine, const std::string& comment);
  // The engine for a graph; empty if none is named.
  std::string engine(const std::string& graph) const;
  // Whether an engine (not our own kernels) is named; for graphs that a step can do without.
  bool names_engine(const std::string& graph) const;
  // The engine to build a graph with; empty: the heuristics' first.
  std::string engine_to_build(const std::string& graph) const {
    return names_engine(graph) ? engine(graph) : "";
  }

 private:
  struct Entry {
    std::string engine, comment;
  };
  std::string environment_;
  std::map<std::string, Entry> entries_;  // by the graph's text
};

}  // namespace rk
