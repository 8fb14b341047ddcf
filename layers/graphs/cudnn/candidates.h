// A graph in cuDNN's form, with the plans of all engines that support it, most of them not yet
// built: for the handle of a GPU, or for a GPU that is only described. Includes cuDNN's frontend,
// whose headers compile slowly.
//
// Engines are never used if, by cuDNN's own notes, they are nondeterministic, reduce in less than
// float32 or transform tiles (Winograd, FFT); in fp32, engines on tensor cores are excluded too.
#pragma once

#include "engine/base/error.h"
#include "layers/graphs/cudnn/recorder.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rk::cudnn {

// The first call loads the library; throws DeviceError if it cannot be loaded.
void load();

class Candidates {
 public:
  // Throws DeviceError if no engine supports the graph; the message names the graph and the
  // refusal.
  Candidates(Graph graph, cudnnHandle_t handle) : graph_(std::move(graph)) { collect(handle); }
  // gpu: its device properties in cuDNN's JSON format. compute_capability: 80, 90.
  Candidates(Graph graph, const std::string& gpu, int compute_capability)
      : graph_(std::move(graph)) {
    load();
    auto properties = std::make_shared<fe::DeviceProperties>();
    check("device", properties->deserialize({gpu.begin(), gpu.end()}));
    frontend_.set_device_properties(properties).set_sm_version(compute_capability);
    collect(nullptr);
  }
  Candidates(const Candidates&) = delete;
  Candidates& operator=(const Candidates&) = delete;

  void check(const char* stage, fe::error_t error) const {
    if (error.is_good()) return;
    fail<DeviceError>("cuDNN: {}: {}: {}", graph_.text(), stage, error.get_message());
  }

  std::int64_t count() const { return frontend_.get_execution_plan_count(); }
  std::string name(std::int64_t plan) const {
    std::string text;
    check("name", frontend_.get_plan_name_at_index(plan, text));
    return text;
  }
  std::size_t workspace_bytes(std::int64_t plan) const {
    std::int64_t bytes = 0;
    check("workspace", frontend_.get_workspace_size_plan_at_index(plan, bytes));
    return static_cast<std::size_t>(bytes);
  }
  bool compiles(std::int64_t plan) const {
    std::vector<fe::BehaviorNote_t> notes;
    check("notes", frontend_.get_behavior_notes_for_plan_at_index(plan, notes));
    return std::ranges::count(notes, fe::BehaviorNote_t::RUNTIME_COMPILATION) > 0;
  }

  // Returns why the plan cannot be built, or nothing.
  std::string build(std::int64_t plan) {
    fe::error_t error = frontend_.build_plan_at_index(plan);
    if (error.is_good()) return "";
    return error.get_message().empty() ? "no reason is given" : error.get_message();
  }

  // places: of the tensors, by place_of(), and constants().
  fe::error_t run(cudnnHandle_t handle, Places& places, void* workspace, std::int64_t plan) {
    return frontend_.execute_plan_at_index(handle, places, workspace, plan);
  }
  // The places of the numbers that the graph reads besides its tensors.
  Places constants() {
    Places places;
    for (auto& [uid, number] : constants_) places[uid] = &number;
    return places;
  }

  const Graph& graph() const { return graph_; }
  fe::graph::Graph& frontend() { return frontend_; }

 private:
  void collect(cudnnHandle_t handle) {
    frontend_.set_io_data_type(element_type(image_type(graph_.precision())))
        .set_intermediate_data_type(Type::FLOAT)
        .set_compute_data_type(Type::FLOAT);
    Recorder recorder(frontend_, graph_);
    recorder.record();
    constants_ = std::move(recorder).constants();
    check("shapes", frontend_.validate());
    check("operations", frontend_.build_operation_graph(handle));
    // The second list has engines for graphs for which the first has none.
    check("engines",
          frontend_.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}));
    frontend_.deselect_numeric_notes(refused_notes(graph_.precision()));
    check("engines", frontend_.check_support());
  }

  static std::vector<fe::NumericalNote_t> refused_notes(Precision precision) {
    using Note = fe::NumericalNote_t;
    std::vector<Note> notes = {Note::REDUCED_PRECISION_REDUCTION, Note::NONDETERMINISTIC, Note::FFT,
                               Note::WINOGRAD};
    if (precision == Precision::kFp32) {
      notes.push_back(Note::TENSOR_CORE);
      notes.push_back(Note::DOWN_CONVERT_INPUTS);
    }
    return notes;
  }

  Graph graph_;
  fe::graph::Graph frontend_;
  Recorder::Constants constants_;
};

}  // namespace rk::cudnn
