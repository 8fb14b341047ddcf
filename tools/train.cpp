// train: learns an embedding that retrieves.
#include "tools/cli/cli.h"
#include "tools/train/train_command.h"

int main(int argc, char** argv) {
  return rk::run_program(
      argc, argv,
      "Learns an embedding that retrieves: images of one class end up side by side.\n"
      "A first run, of a folder of photos for each class:\n"
      "  train --data folder:photos --arch resnet18 --out runs/first",
      rk::make_train());
}
