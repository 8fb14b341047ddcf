// A network as `bench step` trains it, recorded for a GPU without a plan table, so that graphs
// compute wherever they can. To look at, never planned.
#pragma once

#include "engine/tape/program.h"
#include "layers/graphs/graph_run.h"
#include "layers/networks/network.h"
#include "training/trainer.h"

namespace rk {

// The context's plan table is empty afterwards.
class UnplannedNetwork {
 public:
  UnplannedNetwork(const Context& context, const TrainerOptions& options)
      : program_(without_plans(context), parameters_,
                 {.gradients = true, .precision = options.precision}) {
    NetworkSpec spec;
    spec.arch = options.model.arch;
    spec.dim = options.model.dim;
    spec.batchnorm = options.batchnorm;
    build_network(program_, spec, options.batch, options.model.crop, options.model.crop);
  }
  Program& program() { return program_; }

 private:
  static const Context& without_plans(const Context& context) {
    set_plans(context, GpuPlans(plan_environment(context)));
    return context;
  }

  Parameters parameters_;
  Program program_;
};

}  // namespace rk
