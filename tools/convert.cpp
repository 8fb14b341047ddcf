// convert: weights from one file format to another.
#include "tools/cli.h"
#include "tools/convert_command.h"

int main(int argc, char** argv) {
  return rk::run_program(argc, argv,
                         "Converts the weights of a ResNet: PyTorch .pth, safetensors, Keras .h5 "
                         "and Rankine's own files\nto Rankine's HDF5 or to safetensors. Nothing in "
                         "a file is ever executed.",
                         rk::make_convert());
}
