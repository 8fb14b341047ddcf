// eval: how well embeddings retrieve.
#include "tools/cli/cli.h"
#include "tools/eval/eval_command.h"

int main(int argc, char** argv) {
  return rk::run_program(
      argc, argv,
      "Measures how well embeddings retrieve, compares two of them, or looks pictures up.\n"
      "  eval --checkpoint runs/first/best.h5 --data folder:photos --report report.html\n"
      "  eval --embeddings e.npy --labels y.npy                   embeddings that you have\n"
      "  eval --compare runs/first runs/second --data folder:photos\n"
      "  eval --compare a.npy b.npy --labels y.npy                of the same pictures\n"
      "  eval --checkpoint runs/first/best.h5 --index index.h5 --query photo.jpg\n"
      "                                      in what --save-embeddings index.h5 wrote before",
      rk::make_eval());
}
