#!/usr/bin/env bash
# Runs the tests that need an NVIDIA GPU (label gpu). Fails, and says why in one line, where there is
# no GPU or where no such test ran. Usage: tools/test_gpu.sh BUILD JOBS
set -euo pipefail
build=$1 jobs=$2
if ! command -v nvidia-smi >/dev/null || ! nvidia-smi -L 2>/dev/null | grep -q GPU; then
  echo "error: no NVIDIA GPU here (nvidia-smi lists none); run this on a machine that has one" >&2
  exit 5
fi
cmake --build "$build" -j "$jobs"
if ! ctest --test-dir "$build" -N -L gpu | grep -q 'Test *#'; then
  echo "error: this build has no GPU tests; it was configured without CUDA" >&2
  exit 5
fi
ctest --test-dir "$build" -L gpu --no-tests=error --output-on-failure
