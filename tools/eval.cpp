// eval: how well embeddings retrieve.
#include "tools/cli/cli.h"
#include "tools/eval/eval_command.h"

int main(int argc, char** argv) {
  return rk::run_program(argc, argv, "Measures how well embeddings retrieve.", rk::make_eval());
}
