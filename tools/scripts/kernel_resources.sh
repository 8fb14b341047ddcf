#!/usr/bin/env bash
# Registers, shared memory, stack and spills of each of our GPU kernels (not the toolkit's CUB), as ptxas
# printed them during the build. Usage:
#   tools/scripts/kernel_resources.sh write TABLE NVCC OBJECT...   writes TABLE
#   tools/scripts/kernel_resources.sh check TABLE NVCC OBJECT...   fails if a kernel spills or has grown, on the chips
#                                                                  that the objects are for
# NVCC is the toolkit's version: another version distributes registers differently. OBJECT is an object file
# of nvcc's; tools/scripts/record_resources.sh wrote OBJECT.resources beside it. Without objects (a build
# without CUDA) it says so and ends with 77, which ctest reports as skipped.
set -euo pipefail
mode=${1:?write or check} table=${2:?the table} version=${3-}
shift $(($# < 3 ? $# : 3))
if [ $# -eq 0 ]; then
  echo "skipped: this build has no CUDA, so there are no kernels to look at"
  exit 77
fi

in_order() { LC_ALL=C sort -k 6 -k 1,1V; }  # by kernel, then by chip
measured() {
  local object
  for object in "$@"; do
    [ -f "$object.resources" ] || { echo "error: $object.resources: not there; build again" >&2; exit 1; }
    cat "$object.resources"
  done | awk '
    /Compiling entry function/ { gsub(/\047/, ""); kernel = $7; chip = $9 }
    /bytes stack frame/ { stack = $1; spill = $5 + $9 }
    /: Used [0-9]+ registers/ {
      shared = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART, RLENGTH) + 0 : 0
      print chip, $5, shared, stack, spill, kernel
    }' | c++filt | { grep -v ' cub::' || true; } |
    sed -E 's/ void / /; s/\(anonymous namespace\):://g; s/rk:://g; s/\((\w+)\)([0-9]+)/\1 \2/g; s/\(.*//; s/> >/>>/g' | in_order
}

new=$(mktemp)
trap 'rm -f "$new"' EXIT
{
  echo "# nvcc $version"
  echo "# Made by the target kernel_resources. Bytes: shared of a block, stack and spill of a thread."
  echo "# chip registers shared stack spill kernel"
  measured "$@"
} >"$new"

case $mode in
  write)
    # The rows of chips that these objects are not for stay, if they are of the same nvcc.
    if [ "$(head -n 1 "$new")" = "$(head -n 1 "$table" 2>/dev/null)" ]; then
      rows=$(awk '/^#/ { next } NR == FNR { chips[$1] = 1; print; next } !($1 in chips)' "$new" "$table" | in_order)
      sed -i '/^#/!d' "$new"
      echo "$rows" >>"$new"
    fi
    cp "$new" "$table"
    echo "$table: $(grep -vc '^#' "$table") kernels"
    ;;
  check)
    same_nvcc=yes
    [ "$(head -n 1 "$table")" = "$(head -n 1 "$new")" ] || same_nvcc=no
    awk -v same_nvcc=$same_nvcc '
      function complain(text) { print "error: " text; failures++ }
      /^#/ { next }
      { chip = $1; registers = $2; shared = $3; stack = $4; spill = $5
        $1 = $2 = $3 = $4 = $5 = ""; name = chip $0; sub(/ +/, " ", name) }
      NR == FNR { known[name] = chip; r[name] = registers; s[name] = shared; t[name] = stack; next }
      { kernels++; seen[name] = 1; chips[chip] = 1 }
      spill > 0 { complain(name " spills " spill " bytes") }
      !(name in known) { complain(name " is not in the table; write it again"); next }
      same_nvcc == "no" { next }
      registers > r[name] { complain(name " takes " registers " registers, was " r[name]) }
      shared > s[name] { complain(name " takes " shared " bytes of shared memory, was " s[name]) }
      stack > t[name] { complain(name " takes " stack " bytes of stack, was " t[name]) }
      END {
        for (name in known) {
          if (same_nvcc == "yes" && known[name] in chips && !(name in seen)) {
            complain(name " of the table is gone; write it again")
          }
        }
        if (same_nvcc == "no") print "the table is of another nvcc: spills alone were looked at"
        print kernels " kernels, " failures + 0 " complaints"
        exit failures > 0 || kernels == 0
      }' "$table" "$new"
    ;;
  *) echo "error: $mode: no such mode; use write or check" >&2; exit 2 ;;
esac
