#!/usr/bin/env bash
# Layout and lint of the project's own sources.
# Usage: tools/scripts/lint.sh format           format every file by .clang-format, includes in order
#        tools/scripts/lint.sh layout           fail if that would change a file or a line is too long
#        tools/scripts/lint.sh check [FILE...]  layout, then whether the files that use oneDNN compile with
#                                               its version 3, then clang-tidy over FILE... (default: all;
#                                               five to eight minutes of two cores)
#        tools/scripts/lint.sh drawn            the same over random files: up to 24 of those changed
#                                               within a day and 8 of all
#        tools/scripts/lint.sh deep [FILE...]   the same with the slow checks, which follow the paths
#                                               through each function (all files: an hour)
set -euo pipefail
mode=${1:?format, layout, check, drawn or deep}
mapfile -t sources < <(git ls-files -co --exclude-standard '*.h' '*.cpp' '*.cu' '*.cuh')
for i in "${!sources[@]}"; do [ -e "${sources[i]}" ] || unset "sources[i]"; done  # deleted, not yet staged
[ ${#sources[@]} -gt 0 ] || { echo "error: git lists no sources here; lint works in a clone" >&2; exit 1; }

layout() {
  clang-format --dry-run -Werror "${sources[@]}"
  if LC_ALL=C.UTF-8 grep -nE '^.{101,}' "${sources[@]}"; then
    echo "error: the lines above are longer than 100 columns; break them" >&2
    return 1
  fi
}

# Makes a compile database for clang, which cannot read g++'s flags and precompiled headers. With a CUDA
# toolkit it includes the GPU code's host files, which clang++ compiles. Sets `headers`, a pattern of the
# files that cannot be compiled here.
build="build-lint"
configure() {
  mkdir -p "$build"
  tools/scripts/setup_cudnn.sh "$build"/third_party
  cmake --preset clang -B "$build" -DRK_CUDA=AUTO -DRK_FUZZ=ON -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON \
    >"$build"/configure.log 2>&1 || { cat "$build"/configure.log; exit 1; }
  headers='^$'  # matches no file
  if grep '^-- No GPU code' "$build"/configure.log; then
    headers='/(cuda|cudnn|nccl)/|^tests/(host_gpu|kernel_cases)/'
  elif grep '^-- No cuDNN' "$build"/configure.log; then
    headers='/cudnn/'
  fi
}

# One version for all machines, newer than the distributions', which also check the system's headers and
# take three times as long.
version=23.1.4
sha256=6bb31e4f319ecbe14acb75f23c3050d0f1d4b1d92ea1c66091bc76e4eac2c1ac
fetch_tidy() {
  local folder="$build/third_party/clang-tidy-$version"
  tidy="$folder/clang_tidy/data/bin/clang-tidy"
  [ -x "$tidy" ] && return
  tools/scripts/fetch_wheel.sh "$folder" "clang-tidy==$version --hash=sha256:$sha256" && chmod +x "$tidy"
}

# Debian 12, where this is run, has oneDNN 2; newer distributions have 3.
onednn_version=2026.1.0  # of the wheel; oneDNN 3.13
onednn_sha256=5dc592efaed768834ac02d9086b350e08440501b11ea3f6b230a66551c9b5fac
parse_with_onednn_3() {
  local folder="$build/third_party/onednn-$onednn_version" users
  local include="$folder/onednn_devel-$onednn_version.data/data/include"
  [ -d "$include" ] ||
    tools/scripts/fetch_wheel.sh "$folder" "onednn-devel==$onednn_version --hash=sha256:$onednn_sha256" || return 2
  mapfile -t users < <(git grep -lE 'oneapi/dnnl|/onednn' -- 'engine/device/*.cpp' 'layers/onednn/*.cpp')
  g++ -std=c++20 -fopenmp -fsyntax-only -Wall -Wextra -Werror -I. -isystem "$include" "${users[@]}" || return 1
  echo "oneDNN 3: ${#users[@]} files compile"
}

case $mode in
  format) clang-format -i "${sources[@]}" ;;
  layout) layout ;;
  check | drawn | deep)
    shift
    layout
    # not_fetched WHAT: only the drawn files may go without.
    not_fetched() {
      [ "$mode" = drawn ] || { echo "error: $1 could not be fetched" >&2; exit 1; }
      echo "skipped: $1 could not be fetched" >&2
    }
    status=0
    parse_with_onednn_3 || status=$?
    [ $status -ne 1 ] || { echo "error: the files above do not compile with oneDNN 3" >&2; exit 1; }
    [ $status -ne 2 ] || not_fetched "oneDNN 3"
    fetch_tidy || { not_fetched "clang-tidy $version, which looks at more than the layout,"; exit 0; }
    configure
    files=("$@")
    [ ${#files[@]} -gt 0 ] ||
      mapfile -t files < <(printf '%s\n' "${sources[@]}" | grep '\.cpp$' | grep -vE "$headers")
    if [ "$mode" = drawn ]; then
      new=$(git log --since=1.day --name-only --format= && git ls-files -mo --exclude-standard)
      mapfile -t files < <({
        printf '%s\n' "${files[@]}" | { grep -xF "$new" || true; } | shuf -n 24
        printf '%s\n' "${files[@]}" | shuf -n 8
      } | sort -u)
    fi
    # The headers of OpenMP and libFuzzer come with clang++.
    options=(--quiet -p "$build" --extra-arg=-idirafter"$(clang++ -print-resource-dir)/include"
      --extra-arg=-Wno-deprecated-declarations)
    # Checks that look at every declaration, the standard headers' too, would take a sixth of the time.
    [ "$mode" = deep ] || options+=("--checks=-clang-analyzer-*,-bugprone-unchecked-optional-access,$(
      )-bugprone-forward-declaration-namespace,-bugprone-reserved-identifier")
    # Several files a call, because starting clang-tidy takes time; few, so that all cores end together.
    if ! printf '%s\0' "${files[@]}" |
      xargs -0 -n 4 -P "$(nproc)" "$tidy" "${options[@]}" 2>"$build"/clang-tidy.log; then
      echo "error: clang-tidy found what stands above (or failed: $build/clang-tidy.log)" >&2
      exit 1
    fi
    echo "clang-tidy: ${#files[@]} files, nothing found"
    ;;
  *) echo "error: $mode: no such mode" >&2; exit 2 ;;
esac
