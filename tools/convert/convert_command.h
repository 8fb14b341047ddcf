// convert: weights from one file format to another.
//
//   convert IN OUT [--to h5|safetensors|onnx] [--arch resnet50] [--dry-run]
//   convert IN --list
//   convert --from-run RUN OUT.safetensors     and OUT.py, which loads it
//   convert --from-run RUN OUT.onnx
//
// Reports the format of the file, which tensors are taken under which names, which are left out,
// and invalid values. The output is read back and compared before it replaces an old file. Bad
// input gives exit code 3 and leaves an existing output unchanged.
#pragma once

#include "tools/cli/cli.h"

#include <memory>

namespace rk {

std::unique_ptr<Command> make_convert();

}  // namespace rk
