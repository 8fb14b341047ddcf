#!/usr/bin/env bash
# Runs the tests of GPU code (tests/cuda). Fails, and says why in one line, if there is no GPU or no such
# test; a test that finds no working GPU fails, too. Usage: tools/scripts/test_gpu.sh BUILD JOBS [SEEDS]
#
# With SEEDS, runs those of them that also run on the emulated GPU there, SEEDS times, JOBS at a time, about half an
# hour each. It rounds as a card does (tests/host_gpu/rounding.h), each time with another
# RK_ROUNDING_SEED: one after the other, from the one given or drawn. Then lists the largest share of every bound
# that was used; logs stay in BUILD/rounding.
set -euo pipefail
build=$1 jobs=$2 seeds=${3:-}
# No pipes into grep -q: it closes them early, and the writer's failure would count (pipefail).
if [ -z "$seeds" ] && { ! command -v nvidia-smi >/dev/null || ! grep -q GPU <<<"$(nvidia-smi -L 2>/dev/null)"; }; then
  echo "error: no NVIDIA GPU here (nvidia-smi lists none); run this on a machine that has one, or with SEEDS=1" >&2
  exit 5
fi
# Ninja writes "cuda_test: phony", Make "... cuda_test".
if ! grep -qE '^(\.\.\. )?cuda_test\b' <<<"$(cmake --build "$build" --target help)"; then
  echo "error: this build has no GPU tests; it was configured without CUDA" >&2
  exit 5
fi
if [ -z "$seeds" ]; then
  cmake --build "$build" --target cuda_test -j "$jobs"
  RK_REQUIRE_GPU=1 ctest --test-dir "$build" -L '^cuda$' --no-tests=error --output-on-failure
  exit
fi

cmake --build "$build" --target host_gpu_test host_gpu_golden -j "$jobs"
logs=$build/rounding
rm -rf "$logs"
mkdir "$logs"
tests='*GpuNetwork.*:*GpuNetworkForms.*:*GpuBranches.*:GpuStepTest.*:ProxyTest.*:Cuda*:*OnHostGpu.*'
tests+='-*HostGpuNetwork*'
first=${RK_ROUNDING_SEED:-$RANDOM}
failed=0
# shellcheck disable=SC2016  # the inner shell expands these
seq "$first" $((first + seeds - 1)) | OMP_WAIT_POLICY=PASSIVE xargs -P "$jobs" -I{} bash -c \
  'export RK_ROUNDING_SEED={}
   "$1/host_gpu_test" --gtest_filter="$2" >"$3/{}.log" 2>&1 || failed=1
   for topic in losses metrics networks; do
     "$1/host_gpu_golden" "$4" $topic --device cuda >>"$3/{}.log" 2>&1 || failed=1
   done
   exit ${failed:-0}' _ "$build/bin" "$tests" "$logs" "$PWD/tests/golden" || failed=1
# share S  TEST | WHAT | OFF of BOUND NOTE
awk -F ' [|] ' '$1 ~ /^share / {
  split($1, of, " +"); key = of[3] " | " $2
  if (!(key in most) || of[2] == "nan" || of[2] > most[key] + 0) { most[key] = of[2]; where[key] = $3 " (seed " seed() ")" }
}
function seed(name) { name = FILENAME; sub(/.*\//, "", name); sub(/\.log$/, "", name); return name }
END { for (key in most) print most[key], key, "|", where[key] }' "$logs"/*.log | sort -rn
if ! grep -HE '^(\[  FAILED  \].*ms\)|FAIL )' "$logs"/*.log && [ $failed = 0 ]; then
  echo "$seeds runs from RK_ROUNDING_SEED=$first: every test passed"
  exit 0
fi
echo "error: tests failed; see $logs" >&2
exit 1
