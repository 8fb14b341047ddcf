#!/usr/bin/env bash
# Unit tests in builds that watch memory (address: AddressSanitizer and UndefinedBehaviorSanitizer) or
# threads (thread: ThreadSanitizer). Usage: tools/test_sanitizers.sh address|thread [JOBS]
#
# Golden files and end-to-end runs stay in the plain build: under a sanitizer they take tens of minutes
# and reach no code that the unit tests do not. ThreadSanitizer does not see OpenMP's barriers and would
# report every oneDNN primitive, so it gets the tests that use neither: row kernels under ThreadTeam,
# the loader and the threads themselves.
set -euo pipefail
kind=${1:?address or thread}
jobs=${2:-$(nproc)}
case $kind in
  address) preset=asan select=(-E '^golden|EndToEnd|Slow') targets=(all) ;;
  thread) preset=tsan select=(-R 'Race|Loader|Parallel|Prefetch') targets=(kernels_test data_test engine_test) ;;
  *) echo "error: $kind: no such sanitizer; address or thread" >&2; exit 2 ;;
esac
build=build-$preset
mkdir -p "$build"
cmake --preset "$preset" >"$build/configure.log" 2>&1 || { cat "$build/configure.log"; exit 1; }
cmake --build "$build" -j "$jobs" --target "${targets[@]}"
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1}
ctest --test-dir "$build" --no-tests=error --output-on-failure -j "$jobs" "${select[@]}"
