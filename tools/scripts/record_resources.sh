#!/usr/bin/env bash
# Runs nvcc and writes what ptxas prints about each kernel (-Xptxas -v) to <object>.resources beside the
# object; nvcc's other output goes to standard error. Usage: record_resources.sh nvcc ARGUMENTS...
set -uo pipefail
object=
previous=
for argument in "$@"; do
  [ "$previous" = -o ] && object=$argument
  previous=$argument
done
said=$(mktemp)
trap 'rm -f "$said"' EXIT
"$@" 2>"$said"
code=$?
numbers='^ptxas info|^ +[0-9]+ bytes stack frame'
[ -n "$object" ] && grep -E "$numbers" "$said" >"$object.resources"
grep -vE "$numbers" "$said" >&2
exit "$code"
