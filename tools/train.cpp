// train: learns an embedding that retrieves.
#include "tools/cli.h"
#include "tools/train_command.h"

int main(int argc, char** argv) {
  return rk::run_program(
      argc, argv,
      "Learns an embedding that retrieves: images of one class end up side by side.\n"
      "A first run: train --data folder:photos,val_classes=0.2 --out runs/first",
      rk::make_train());
}
