// convert: weights from one file format to another.
//
//   convert IN OUT [--to h5|safetensors|onnx] [--arch resnet50] [--dry-run]
//   convert IN --list
//   convert --from-run RUN OUT.safetensors     and OUT.py, which loads it
//   convert --from-run RUN OUT.onnx
//
// Says what the file is, which of its tensors are taken under which names, which are not, and what
// is wrong with values; what it writes is read again and compared before it takes its place. Bad
// input is exit code 3 and leaves an output that was there as it was.
#pragma once

#include "tools/cli/cli.h"

#include <memory>

namespace rk {

std::unique_ptr<Command> make_convert();

}  // namespace rk
