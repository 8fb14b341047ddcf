#!/usr/bin/env bash
# Runs every fuzz target for an equal share of SECONDS, JOBS of them at a time, from the seeds in tests/fuzz/corpus and
# the inputs that earlier runs found (build-fuzz/corpus). Usage: tools/scripts/fuzz.sh SECONDS [JOBS] [TARGET...]
#
# Prints a table: runs, edges of our code that were reached and that exist, and the seed (-seed=N repeats a
# run). Inputs that break a target are kept in build-fuzz/crashes, and the exit code is then 1.
set -euo pipefail
seconds=${1:?seconds for all targets together}
jobs=${2:-$(nproc)}
shift $(($# < 2 ? $# : 2))
build=build-fuzz
mkdir -p "$build/crashes"
cmake --preset fuzz >"$build/configure.log" 2>&1 || { cat "$build/configure.log"; exit 1; }
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for source in tests/fuzz/*_fuzz.cpp; do targets+=("$(basename "$source" .cpp)"); done
fi
cmake --build "$build" -j "$jobs" --target "${targets[@]}" >"$build/build.log" 2>&1 ||
  { tail -n 50 "$build/build.log"; exit 1; }

# As in tools/scripts/test_sanitizers.sh.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=1}
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$PWD/tests/leaks.supp:print_suppressions=0}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
share=$((seconds / ${#targets[@]}))
[ "$share" -gt 0 ] || share=1

# fuzz TARGET: prints the target's line of the table, and what broke it.
fuzz() {
  local target=$1 log=$build/$1.log outcome=ok seeds=()
  mkdir -p "$build/corpus/$target"
  if [ -d "tests/fuzz/corpus/$target" ]; then seeds+=("tests/fuzz/corpus/$target"); fi
  if [ "$target" = decode_fuzz ]; then seeds+=(tests/golden/images/files tests/golden/images/bad); fi
  if [ "$target" = npy_fuzz ]; then seeds+=(tests/golden/arrays); fi
  "$build/bin/$target" -max_total_time="$share" -timeout=25 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="$build/crashes/$target-" "$build/corpus/$target" "${seeds[@]}" >"$log" 2>&1 ||
    outcome=BROKEN
  value() { sed -n "s/.*$1//p" "$log" | grep -oE '^[0-9]+' | tail -n 1 || true; }
  printf '%-20s %10s %8s %8s %12s  %s\n' "$target" "$(value 'number_of_executed_units: ')" \
    "$(value 'cov: ')" "$(value 'Loaded 1 modules   (')" "$(value 'INFO: Seed: ')" "$outcome"
  [ "$outcome" = ok ] && return
  grep -E -m 5 'ERROR|SUMMARY|Test unit written|runtime error|deadly signal' "$log" || tail -n 5 "$log"
  return 1
}
export -f fuzz
export build share
printf '%-20s %10s %8s %8s %12s  %s\n' target runs edges of seed outcome
# Each line is printed whole after its target has ended.
printf '%s\0' "${targets[@]}" | xargs -0 -n 1 -P "$jobs" bash -c 'text=$(fuzz "$1"); code=$?; echo "$text"; exit $code' -- ||
  exit 1
