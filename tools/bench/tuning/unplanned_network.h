// A network as `bench step` trains it, recorded for a GPU without a plan table, so that graphs
// compute wherever they can. Only for inspection, never planned.
#pragma once

#include "engine/tape/program.h"
#include "layers/graphs/graph_runner.h"
#include "layers/networks/network.h"
#include "training/model_io.h"
#include "training/trainer.h"

#include <optional>

namespace rk {

// The context's plan table is empty afterwards.
class UnplannedNetwork {
 public:
  UnplannedNetwork(const Context& context, const TrainerOptions& options) {
    set_plans(context, GpuPlans(plan_environment(context)));
    program_.emplace(context, parameters_,
                     Program::Options{.gradients = true, .precision = options.precision});
    build_network(*program_, network_spec(options.model, options.batchnorm), options.batch,
                  options.model.crop, options.model.crop);
  }
  Program& program() { return *program_; }

 private:
  Parameters parameters_;
  std::optional<Program> program_;
};

}  // namespace rk
