#!/usr/bin/env bash
# Layout and lint of the project's own sources.
# Usage: tools/scripts/lint.sh format           lay every file out by .clang-format, includes in order
#        tools/scripts/lint.sh layout           fail where that would change something or a line is too long
#        tools/scripts/lint.sh check [FILE...]  layout, then clang-tidy over FILE... (default: all, an hour)
set -euo pipefail
mode=${1:?format, layout or check}
mapfile -t sources < <(git ls-files -co --exclude-standard '*.h' '*.cpp' '*.cu' '*.cuh')

layout() {
  clang-format --dry-run -Werror "${sources[@]}"
  if LC_ALL=C.UTF-8 grep -nE '^.{101,}' "${sources[@]}"; then
    echo "error: the lines above are longer than 100 columns; break them" >&2
    return 1
  fi
}

# A compile database of clang's own: g++ has flags and precompiled headers that clang does not read.
# With the GPU's files where there is a CUDA toolkit; clang++ compiles those of the host. Sets `headers`,
# a pattern of the files that cannot be compiled here.
build="build-lint"
configure() {
  mkdir -p "$build"
  tools/scripts/setup_cudnn.sh "$build"/third_party
  cmake --preset clang -B "$build" -DRK_CUDA=AUTO -DRK_FUZZ=ON -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON \
    >"$build"/configure.log 2>&1 || { cat "$build"/configure.log; exit 1; }
  headers='^$'  # what no file is called
  if grep '^-- No GPU code' "$build"/configure.log; then
    headers='/(cuda|cudnn|nccl)/|^tests/(host_gpu|kernel_cases)/'
  elif grep '^-- No cuDNN' "$build"/configure.log; then
    headers='/cudnn/'
  fi
}

case $mode in
  format) clang-format -i "${sources[@]}" ;;
  layout) layout ;;
  check)
    shift
    layout
    configure
    files=("$@")
    [ ${#files[@]} -gt 0 ] ||
      mapfile -t files < <(printf '%s\n' "${sources[@]}" | grep '\.cpp$' | grep -vE "$headers")
    printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" clang-tidy --quiet -p "$build"
    ;;
  *) echo "error: $mode: no such mode" >&2; exit 2 ;;
esac
