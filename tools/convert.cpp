// convert: weights from one file format to another.
#include "tools/cli/cli.h"
#include "tools/convert/convert_command.h"

int main(int argc, char** argv) {
  return rk::run_program(
      argc, argv,
      "Converts the weights of networks between PyTorch, Keras, safetensors, ONNX and Rankine's "
      "own HDF5.\n"
      "Reads PyTorch's .pth, safetensors, Keras's .h5 and its own; writes its own, safetensors and "
      "ONNX.\nOf ResNets, GoogLeNet and Inception-v3. Nothing in a file is ever executed.\n"
      "  convert resnet50.pth resnet50.h5          for train --weights and eval --weights\n"
      "  convert resnet50.h5 resnet50.safetensors  for PyTorch\n"
      "  convert resnet50.pth --list               what is in it\n"
      "  convert --from-run runs/first embedder.safetensors    for PyTorch users\n"
      "  convert --from-run runs/first embedder.onnx           for onnxruntime, TensorRT",
      rk::make_convert());
}
