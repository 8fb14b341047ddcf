// bench: median times of one part of the work, each beside its lower bound ("floor").
#include "tools/bench/bench_eval.h"
#include "tools/bench/bench_loader.h"
#include "tools/bench/bench_loss.h"
#include "tools/bench/bench_rank.h"
#include "tools/bench/step/bench_step.h"
#include "tools/cli/cli.h"

#include <utility>
#include <vector>

int main(int argc, char** argv) {
  std::vector<rk::Subcommand> subcommands;
  subcommands.push_back({"step", "a training step of a whole network", rk::make_bench_step()});
  subcommands.push_back({"loss", "a ranking loss and its gradient", rk::make_bench_loss()});
  subcommands.push_back({"rank", "a ranking of up to 1e9 scores", rk::make_bench_rank()});
  subcommands.push_back({"eval", "ranking a whole test set", rk::make_bench_eval()});
  subcommands.push_back({"loader", "reading and preparing images", rk::make_bench_loader()});
  return rk::run_program(argc, argv, "Times one part of the work.", std::move(subcommands));
}
