#!/usr/bin/env bash
# Layout and lint of the project's own sources.
# Usage: tools/lint.sh format           lay every file out by .clang-format
#        tools/lint.sh layout           fail where that would change something or a line is too long
#        tools/lint.sh check BUILD [FILE...]   layout, then clang-tidy over FILE... (default: all)
set -euo pipefail
mode=${1:?format, layout or check}
mapfile -t sources < <(git ls-files -co --exclude-standard '*.h' '*.cpp')

layout() {
  local long
  clang-format --dry-run -Werror "${sources[@]}"
  long=$(awk 'length > 100 {print FILENAME ":" FNR ": longer than 100 columns"}' "${sources[@]}")
  if [ -n "$long" ]; then
    echo "$long" >&2
    return 1
  fi
}

case $mode in
  format) clang-format -i "${sources[@]}" ;;
  layout) layout ;;
  check)
    build=${2:?build folder}
    shift 2
    layout
    files=("$@")
    [ ${#files[@]} -gt 0 ] || mapfile -t files < <(printf '%s\n' "${sources[@]}" | grep '\.cpp$')
    # The compile database is g++'s; clang does not know its width flag.
    printf '%s\0' "${files[@]}" |
      xargs -0 -n 1 -P "$(nproc)" clang-tidy --quiet -p "$build" \
        --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-ignored-optimization-argument
    ;;
  *) echo "error: $mode: no such mode" >&2; exit 2 ;;
esac
