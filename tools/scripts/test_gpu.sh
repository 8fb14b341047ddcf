#!/usr/bin/env bash
# Runs the tests of GPU code (tests/cuda). Fails, and says why in one line, if there is no GPU or no such
# test; a test that finds no working GPU fails, too. Usage: tools/scripts/test_gpu.sh BUILD JOBS
set -euo pipefail
build=$1 jobs=$2
# No pipes into grep -q: it closes them early, and the writer's failure would count (pipefail).
if ! command -v nvidia-smi >/dev/null || ! grep -q GPU <<<"$(nvidia-smi -L 2>/dev/null)"; then
  echo "error: no NVIDIA GPU here (nvidia-smi lists none); run this on a machine that has one" >&2
  exit 5
fi
# Ninja writes "cuda_test: phony", Make "... cuda_test".
if ! grep -qE '^(\.\.\. )?cuda_test\b' <<<"$(cmake --build "$build" --target help)"; then
  echo "error: this build has no GPU tests; it was configured without CUDA" >&2
  exit 5
fi
cmake --build "$build" --target cuda_test -j "$jobs"
RK_REQUIRE_GPU=1 ctest --test-dir "$build" -L '^cuda$' --no-tests=error --output-on-failure
