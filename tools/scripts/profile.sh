#!/usr/bin/env bash
# Profiles one training step or one loss on the GPU: a time line with Nsight Systems, and bytes and tensor core use of
# every kernel with Nsight Compute, which runs each kernel several times. Only the range "measured", which `bench`
# marks, is profiled. The results lie in BUILD/profile:
#   NAME.nsys-rep    open with nsys-ui         NAME.kernels.txt, NAME.ranges.txt   its summaries
#   NAME.ncu-rep     open with ncu-ui          NAME.csv                            the same as text
#   NAME.txt         what ran, its output, and the table made from NAME.csv (tools/scripts/profile_table.py)
# If one of the two profilers is missing, only the other's part is done. docs/profiling.md explains.
# Usage: tools/scripts/profile.sh step|loss BUILD [FLAGS of bench]
#   as:  tools/scripts/profile.sh loss build --loss fastap --n 1024
# Variables: LIMIT=      seconds for all of it, at most half of them for the time line; a profiler that takes longer is
#                        interrupted, and its results so far are used
set -euo pipefail
what=${1:?step or loss} build=${2:?the build folder} name=$1
shift 2
case $what in
  # Without the graph: in a replayed graph the host cannot mark the nodes one by one.
  step) defaults=(--arch resnet50 --batch 128 --bn train --precision fp16 --graph off --repeats 3) ;;
  loss) defaults=(--loss smooth_ap --n 4096 --dim 512 --repeats 3) ;;
  *) echo "error: $what: no such profile; use step or loss" >&2; exit 2 ;;
esac
# A given flag replaces the default, because bench refuses the same flag twice.
flags=()
for ((i = 0; i < ${#defaults[@]}; i += 2)); do
  given=no
  for flag in "$@"; do
    [[ $flag == "${defaults[i]}" || $flag == "${defaults[i]}="* ]] && given=yes
  done
  [ $given = yes ] || flags+=("${defaults[i]}" "${defaults[i + 1]}")
done
command=("$build/bin/bench" "$what" --device cuda "${flags[@]}" "$@")
precision=()
for ((i = 0; i < ${#command[@]}; ++i)); do
  case ${command[i]} in
    --precision) precision=(--precision "${command[i + 1]:-}") ;;
    --precision=*) precision=(--precision "${command[i]#*=}") ;;
  esac
done

if ! command -v nvidia-smi >/dev/null || ! grep -q GPU <<<"$(nvidia-smi -L 2>/dev/null)"; then
  echo "error: no NVIDIA GPU here (nvidia-smi lists none); run this on a machine that has one" >&2
  exit 5
fi
if [ ! -x "$build/bin/bench" ]; then
  echo "error: $build/bin/bench is not there; build it with make" >&2
  exit 3
fi
# Adds the folders where the packages install the profilers.
PATH=$PATH:/usr/local/cuda/bin
for folder in /opt/nvidia/nsight-systems/*/bin /opt/nvidia/nsight-compute/*; do PATH=$PATH:$folder; done
systems=$(command -v nsys || true) compute=$(command -v ncu || true)
if [ -z "$systems$compute" ]; then
  echo "error: neither nsys nor ncu was found; install nsight-systems and nsight-compute of NVIDIA's repository" >&2
  exit 5
fi
out=$build/profile
mkdir -p "$out"
rm -f "$out/$name".*
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | sed -n 1p)
echo "$gpu: ${command[*]}"

# failed LOG: prints the log's reason in one line.
failed() {
  local why
  why=$(grep -m 1 -E 'ERR_NVGPUCTRPERM|==ERROR==|^error:|[Ee]rror' "$1" || tail -n 1 "$1")
  case $why in
    "") why="it wrote no report" ;;
    *ERR_NVGPUCTRPERM*) why="this user may not read the GPU's counters (ERR_NVGPUCTRPERM); run it as root" ;;
  esac
  echo "error: $2 failed: ${why#error: } (all of it is in $1)" >&2
}

# at_most SECONDS COMMAND...: interrupts the command then as a terminal does, so that a profiler writes what it has. env
# restores that signal, which a script in the background ignores. Without LIMIT there is no limit.
at_most() {
  local seconds=0
  [ -z "${LIMIT:-}" ] || seconds=$(($1 > 1 ? $1 : 1))
  timeout --foreground --signal=INT --kill-after=10 "$seconds" env --default-signal=INT "${@:2}"
}

code=0
if [ -n "$systems" ]; then
  at_most $((${LIMIT:-0} / 2)) "$systems" profile --trace=cuda,nvtx,cublas,cudnn --sample=none --cpuctxsw=none \
    --capture-range=nvtx --nvtx-capture=measured@rankine --capture-range-end=stop \
    --cuda-graph-trace=node --force-overwrite=true --output="$out/$name" "${command[@]}" \
    >"$out/$name.nsys.log" 2>&1 || code=5
  if [ -s "$out/$name.nsys-rep" ]; then
    [ $code = 0 ] || echo "nsys was interrupted or failed: the time line is what it has (see $out/$name.nsys.log)"
    "$systems" stats --force-export=true --report=cuda_gpu_kern_sum --format=table "$out/$name.nsys-rep" \
      >"$out/$name.kernels.txt" 2>>"$out/$name.nsys.log" || true
    "$systems" stats --report=nvtx_gpu_proj_sum --format=table "$out/$name.nsys-rep" \
      >"$out/$name.ranges.txt" 2>>"$out/$name.nsys.log" || true
    rm -f "$out/$name.sqlite"  # the report once more
    echo "$out/$name.nsys-rep, $out/$name.kernels.txt, $out/$name.ranges.txt"
  else
    failed "$out/$name.nsys.log" nsys
    code=5
  fi
else
  echo "no time line: nsys was not found; install nsight-systems of NVIDIA's repository"
fi
if [ -n "$compute" ]; then
  "$compute" --version 2>/dev/null | grep Version || true
  # profile_kernels METRICS. ncu must not change clocks or caches: they stay as in a normal run.
  profile_kernels() {
    at_most $((${LIMIT:-0} - SECONDS)) "$compute" --nvtx --nvtx-include "rankine@measured/" --clock-control none \
      --cache-control none --metrics "$1" --csv --page raw --print-units base --force-overwrite \
      --export "$out/$name" --log-file "$out/$name.csv" "${command[@]}" >"$out/$name.ncu.log" 2>&1
  }
  metrics=gpu__time_duration.sum,dram__bytes.sum
  ended=well
  profile_kernels $metrics,sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed || ended=early
  if [ $ended = early ] && grep -qs 'Failed to find metric' "$out/$name.csv" "$out/$name.ncu.log"; then
    echo "ncu does not know the metric of tensor cores on this GPU: the table goes without their share"
    ended=well
    profile_kernels $metrics || ended=early
  fi
  [ $ended = well ] || code=5
  # ncu may print nothing if it writes a report; the table is then read from the report.
  if ! grep -q '^"ID"' "$out/$name.csv" 2>/dev/null && [ -s "$out/$name.ncu-rep" ]; then
    "$compute" --import "$out/$name.ncu-rep" --csv --page raw --print-units base \
      >"$out/$name.csv" 2>>"$out/$name.ncu.log" || true
  fi
  if [ $ended = early ] && ! grep -q '^"ID"' "$out/$name.csv" 2>/dev/null; then
    cat "$out/$name.csv" >>"$out/$name.ncu.log" 2>/dev/null || true
    failed "$out/$name.ncu.log" ncu
    exit $code
  fi
  [ $ended = well ] || echo "ncu was interrupted or failed: the table is of what it has (see $out/$name.ncu.log)"
  table=("$(dirname "$0")/profile_table.py" "$out/$name.csv" --json "$out/$name.json" "${precision[@]}")
  # For a GPU that profile_table.py does not know, the table has no shares of the peak.
  "${table[@]}" --gpu "$gpu" >"$out/$name.table" 2>"$out/$name.table.log" ||
    "${table[@]}" >"$out/$name.table" 2>"$out/$name.table.log" ||
    { failed "$out/$name.table.log" "the table"; exit 5; }
  {
    echo "$gpu: ${command[*]}"
    sed '/^==/d' "$out/$name.ncu.log"
    [ "$what" = loss ] || [[ "${command[*]}" == *" --plans"* ]] || echo "without plans"
    echo
    cat "$out/$name.table"
  } >"$out/$name.txt"
  rm "$out/$name.table" "$out/$name.table.log"
  cat "$out/$name.txt"
  echo "first lines of $out/$name.csv:"
  grep -m 1 -A 2 '^"ID"' "$out/$name.csv" | cut -c 1-600
  echo "$out/$name.ncu-rep, $out/$name.csv, $out/$name.txt, $out/$name.json"
else
  echo "no table: ncu was not found; install nsight-compute of NVIDIA's repository"
fi
exit $code
