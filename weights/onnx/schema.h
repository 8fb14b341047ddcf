// ONNX's classes, with the macros that Debian's library of them is built with.
#pragma once

#define ONNX_ML 1
#define ONNX_NAMESPACE onnx
#include <onnx/onnx_pb.h>
