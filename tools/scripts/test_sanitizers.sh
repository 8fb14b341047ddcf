#!/usr/bin/env bash
# Unit tests in builds that watch memory (AddressSanitizer and UndefinedBehaviorSanitizer) or threads
# (ThreadSanitizer). Usage: tools/scripts/test_sanitizers.sh address|gpu|files|thread [JOBS]
#   address  all unit tests
#   gpu      those on the emulated GPU, for which nvcc must be there
#   files    those of the folders that read files and manage memory, built by clang++ from the same
#            objects as the fuzz targets (tools/scripts/fuzz.sh): minutes
#   thread   the loader, the parallel sort, long rankings and the threads themselves
#
# Golden files, end-to-end runs and tests with several processes run only in the plain build: under a sanitizer
# they take tens of minutes and reach no code that the unit tests do not, and MPI itself leaks. ThreadSanitizer
# does not see OpenMP's barriers and would report every oneDNN primitive, so it runs only tests that use
# neither; race_test, part of `make test`, covers row kernels under ThreadTeam.
set -euo pipefail
kind=${1:?address, gpu, files or thread}
jobs=${2:-$(nproc)}
preset=asan
build=
options=()
filter='*'
case $kind in
  address) targets=(all) ;;
  gpu)
    # The CUDA runtime supports no sanitizer, but none of it is linked here.
    build=build-gpu-asan
    options=(-DRK_CUDA=ON -DRK_CUDA_ARCHITECTURES=90-real)
    targets=(host_gpu_test)
    ;;
  files)
    preset=fuzz
    targets=(engine_test kernels_test data_test weights_test)
    ;;
  thread)
    preset=tsan
    targets=(engine_test kernels_test data_test threads_test training_test)
    filter='Parallel*:SquareSum*:Optimizer*:*Loader*'
    ;;
  *) echo "error: $kind: no such kind; address, gpu, files or thread" >&2; exit 2 ;;
esac
build=${build:-build-$preset}
mkdir -p "$build"
[ "$kind" != gpu ] || tools/scripts/setup_cudnn.sh "$build"/third_party
cmake --preset "$preset" -B "$build" "${options[@]}" >"$build/configure.log" 2>&1 || { cat "$build/configure.log"; exit 1; }
cmake --build "$build" -j "$jobs" --target "${targets[@]}"
# Our code, not the sanitizer, must report a buffer larger than any memory. OpenMP's runtime never frees what
# it allocates for its threads.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=1}
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$PWD/tests/leaks.supp:print_suppressions=0}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1}
export OMP_WAIT_POLICY=PASSIVE  # as in `make test`
if [ "$kind" = address ]; then
  ctest --test-dir "$build" --no-tests=error --output-on-failure -j "$jobs" \
    -LE fault -E '^golden|^race|^TrainProgram|^TrainProcesses|^processes'
  exit
elif [ "$kind" = gpu ]; then
  ctest --test-dir "$build" --no-tests=error --output-on-failure -j "$jobs" -L host_gpu -E golden
  exit
fi
# In four parts each: one of the programs takes longer than all others together.
export build filter GTEST_TOTAL_SHARDS=4
for target in "${targets[@]}"; do printf "$target\0%s\0" 0 1 2 3; done | xargs -0 -n 2 -P "$jobs" bash -c '
  text=$(GTEST_SHARD_INDEX=$2 "$build/bin/$1" --gtest_brief=1 --gtest_filter="$filter" 2>&1); code=$?
  printf "%s, part %s\n%s\n" "$1" "$2" "$text"; exit $code' --
