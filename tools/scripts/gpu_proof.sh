#!/usr/bin/env bash
# Checks every claim about GPUs on a real one. Each piece is a run of at most ten minutes that can be started by itself;
# they come in order of importance: does it run, is it right, is it fast, why, and the rest. Needs no compiler and no
# network: uses the programs that are built, and skips, with a reason, pieces that lack something. A piece that fails
# does not stop the others. A piece that its limit ends says what it has found by then.
#
# Usage: tools/scripts/gpu_proof.sh list          the pieces, with the seconds kept for each
#        tools/scripts/gpu_proof.sh all           every piece, one after the other
#        tools/scripts/gpu_proof.sh NAME...       some of them, or a group of them: first, second, third, fourth, rest
# Variables: BUILD=build         the build folder
#            RESULTS=...         the output folder (bench/results/DATE-GPU): NAME.txt for each piece, NAME.json for some
#            ARCHIVE=FILE.tar.gz of RESULTS, written anew after every piece and while one runs; what profilers left for
#                                their own windows, which is large, in FILE-profiles.tar.gz. If RESULTS is empty and
#                                ARCHIVE is there, the call goes on from what it holds.
#            PACK_EVERY=60       seconds between two archives while a piece runs
#            PYTHON=python3      with torch, for comparisons with PyTorch; its wheels may bring CUDA's libraries
#            OMNIGLOT=folder     with images_background_small1 and images_background_small2, unpacked
#            LIMIT=540           the most seconds for any piece; each also has a limit of its own, shown by `list`
#            TIME=               seconds for the whole call: no piece begins after them, and a running one is ended
#            TEST_LIMIT=         seconds for each test of `conformance` (120), and each run of `starts` and `losses` (40)
#            PARALLEL=           tests of `conformance` at a time: half the processor's cores, at least 6
#            COMMIT=...          the commit that was built, for folders without git
#            ANYWAY=yes          begins although the trial step failed, which else ends the call with code 5
# Exit code 0 if no piece that began failed, 1 if one did or was not finished, 2 for wrong usage, 3 without programs
# that start or a place for results, 5 without a GPU that works.
set -uo pipefail
# Names are those of the folder it is called from.
for name in BUILD RESULTS ARCHIVE OMNIGLOT PYTHON; do
  value=${!name-}
  if [ -n "$value" ] && [[ $value != /* ]] && { [ $name != PYTHON ] || [[ $value == */* ]]; }; then
    export $name="$PWD/$value"
  fi
done
cd "$(dirname "$0")/../.." || exit 1
self=$PWD/tools/scripts/gpu_proof.sh
build=${BUILD:-build}
bin=$build/bin
python=${PYTHON:-python3}
limit=${LIMIT:-540}
test_limit=${TEST_LIMIT:-120}
run_limit=${TEST_LIMIT:-40}
pack_every=${PACK_EVERY:-60}
parallel=${PARALLEL:-$(($(nproc) / 2 > 6 ? $(nproc) / 2 : 6))}

# A line without spaces opens a group: the pieces for one call of nine minutes, except for `rest`. The first three hold
# all that matters, for a machine that is there for half an hour. The seconds after a piece's name are kept for it: a
# piece that hangs must leave time for the others. In a call with TIME it also has the seconds that nothing after it
# needs, so a group ends with a piece that can use them.
pieces='
first:
starts            120 s  four steps each of ResNet-50: fp32 and fp16, both batch norms, with and without CUDA graph
conformance       210 s  every test of GPU code, each by itself: losses, layers, networks, optimizer (cuda_test)
golden            120 s  networks, losses and metrics against the values of PyTorch
replay             60 s  a run in CUDA graphs equals the run without them, bit for bit
description        30 s  how cuDNN describes this GPU, for the tests that build its graphs without one (tests/cudnn)
second:
step              140 s  ResNet-50 step in fp16, batch 256, both batch norms, untuned, beside PyTorch eager
step-compile      200 s  the same beside torch.compile
tuned-train       200 s  as step with batch norm on the batch, its engines and ways timed first
third:
profile-train     110 s  the table of a step, kernel by kernel, batch norm on the batch
fusions           200 s  what the step would gain from batch norm computed in the convolutions beside it
eval               90 s  evaluation at the size of SOP beside torch and faiss
losses            140 s  every loss at N = 128 to 8192, D = 512, beside its floor
fourth:
tuned-frozen      200 s  as tuned-train with batch norm frozen
profile-frozen    110 s  the table of a step with batch norm frozen
memcheck          230 s  compute-sanitizer: accesses out of bounds, in our kernels and in runs of two steps
rest:
racecheck         170 s  compute-sanitizer: races in shared memory, in the same
initcheck         300 s  compute-sanitizer: reads of memory nobody wrote, in the same
synccheck         150 s  compute-sanitizer: barriers that not all threads reach, in the same
resume            180 s  a run that was stopped and went on ends with the same bytes
step-batches      400 s  as step with batch 64, 128, 256, beside PyTorch eager and its graphs
compile-batches   540 s  as step-compile with batch 64, 128, and with its CUDA graphs
loader             90 s  drawn pictures and photos from the loader into the input of a network, beside the floor of the way up
profile-loss      120 s  the table of smooth_ap at N = 4096
losses-peers      400 s  losses beside pytorch-metric-learning
omniglot          540 s  R@1 of recipes/omniglot.toml
step-bf16         400 s  as step-batches in bf16
step-tf32         400 s  as step-batches in tf32
two-gpus          120 s  a run on two GPUs has the losses of a run on one
'
names=$(sed -n 's/^\([a-z0-9-]*\)  .*/\1/p' <<<"$pieces")
# Prints the names of a group's pieces; nothing if there is no such group.
group() { sed -n "/^$1:\$/,/^[a-z]*:\$/s/^\([a-z0-9-]*\)  .*/\1/p" <<<"$pieces"; }
limit_of() { sed -n "s/^$1  *\([0-9]*\) s  .*/\1/p" <<<"$pieces"; }

# says WORDS COMMAND...: whether the command prints WORDS, whatever its exit code. Uses no pipe, because grep -q would
# close it before the command has written everything.
says() {
  local words=$1
  shift
  grep -q -e "$words" <<<"$("$@" 2>&1)"
}

# A card that has fallen off the bus may leave nvidia-smi waiting for ever.
smi() { timeout --kill-after=1 10 nvidia-smi "$@"; }

# A piece ends by one of these; its last line is what the closing table shows.
skip() { echo "$*"; exit 77; }
fail() { echo "$*"; exit 1; }
unfinished() { echo "$*"; exit 75; }
# Prints in one line what a piece has found so far, in case its limit ends it. Pieces that can tell redefine it.
tally() { :; }

# bounded SECONDS COMMAND...: runs it in a process group of its own, so that nothing it starts outlives it, and in the
# background, because bash handles the signal that ends the piece only while it waits.
running=
bounded() {
  timeout --kill-after=5 "$(($1 > 1 ? $1 : 1))" "${@:2}" &
  running=$!
  wait $running
  local code=$?
  kill -KILL -- -$running 2>/dev/null
  running=
  return $code
}
end_running() {
  [ -z "$running" ] || { kill "$running" && wait "$running"; kill -KILL -- -"$running"; } 2>/dev/null
}
# The handler of a piece that its limit ends: leaves no process behind, and prints what was found.
ended() {
  trap '' TERM
  exec >&3  # the piece's own output, even if a command's is redirected
  end_running
  wait
  tail -n 20 "$work/unsaid" 2>/dev/null  # output that was captured to be checked before it is shown
  local found
  found=$(tally)
  [ -z "$found" ] || echo "cut off: $found"
  exit 143
}
over() { [ "$1" = 124 ] || [ "$1" = 137 ]; }  # over CODE: whether a limit ended the command
listed() { printf '%s, ' "$@" | sed 's/, $//'; }
named() { [ $# = 1 ] || echo "$1$(listed "${@:2}")"; }  # named WORDS [NAME...]: prints nothing without a name
need_bin() { [ -x "$bin/$1" ] || skip "$bin/$1 is not there; build it first"; }
# has_python MODULE: does not import it, which takes seconds.
has_python() {
  "$python" -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$1') is None)" 2>/dev/null
}
need_python() { has_python "$1" || skip "$python has no $1; PYTHON=... names another"; }
# number KEY FILE: prints a number of a JSON file that has one a line.
number() { sed -nE "s/^ *\"$1\": *([0-9.eE+-]+).*/\1/p" "$2"; }
need_flag() {  # need_flag FLAG PROGRAM [SUBCOMMAND]: an older build does not know it
  local flag=$1 program=$2
  shift 2
  need_bin "$program"
  says "$flag" "$bin/$program" "$@" --help || skip "$program${*:+ $*} has no $flag; build a newer version"
}

# Runs of `train` for comparisons: drawn characters, less than a minute, the same every time.
tiny=(--data "glyphs:classes=40,test_classes=20,alphabets=2,test_alphabets=2,images=8,size=32" --arch resnet18
  --dim 64 --image-size 32 --resize 32 --batch 32 --per-class 4 --device cuda --seed 3)
tiny_train() { "$bin/train" "${tiny[@]}" --precision fp16 "$@" || fail "train $* ended with exit code $?"; }
# Prints a run's metrics without its times.
found() {
  sed -E 's/"(seconds|images_per_second|timed_batches|eval_seconds|waited_for_images)": ?[0-9.eE+-]+,? ?//g' \
    "$1/metrics.jsonl"
}
alike() {  # alike RUN RUN: prints how they differ
  [ -s "$1/metrics.jsonl" ] || fail "$1 has no metrics.jsonl"
  diff <(found "$1") <(found "$2")
}
same() {  # same RUN RUN WORDS
  alike "$1" "$2" || fail "$3: the runs differ, see above"
}

# If a graph cannot be captured, the program only prints a note and runs the step without.
piece_starts() {
  need_flag --graph bench step
  local precision bn graph what code captured runs=0 failed=() wrong=()
  : >"$results/starts.jsonl"
  tally() { echo "$runs of 8 ran$(named ", not: " "${failed[@]}")$(named "; graph not as asked: " "${wrong[@]}")"; }
  for precision in fp16 fp32; do
    for bn in train frozen; do
      for graph in on off; do
        what="$precision $bn graph $graph"
        echo "--- $what"
        bounded "$run_limit" "$bin/bench" step --device cuda --batch 64 --repeats 4 --precision "$precision" \
          --bn "$bn" --graph "$graph" --json "$work/row.json"
        code=$?
        if [ $code != 0 ]; then
          over $code && what+=" (over $run_limit s)"
          failed+=("$what")
          continue
        fi
        runs=$((runs + 1))
        captured=off
        grep -q '"captured": *true' "$work/row.json" && captured=on
        [ $captured = $graph ] || wrong+=("$what")
        tr -d '\n' <"$work/row.json" >>"$results/starts.jsonl"
        echo >>"$results/starts.jsonl"
      done
    done
  done
  [ $((${#failed[@]} + ${#wrong[@]})) = 0 ] || fail "$(tally)"
  echo "all 8 ran, the 4 with a graph as one"
}

# Runs each test in a process of its own: after an illegal access CUDA answers nothing more, and a barrier that hangs
# would take the others' time. Runs several at a time, because most of it is cuDNN's compiling on the host; the tests
# that compile most first, so that none of them is left alone at the end.
piece_conformance() {
  need_bin cuda_test
  local tests=() passed failed skipped missing i
  mapfile -t tests < <("$bin/cuda_test" --gtest_list_tests | awk '/^[^ ]/ { suite = $1 } /^ / { print suite $1 }' |
    grep '\.' | awk '/GpuNetwork|GpuBranches|GpuStepTest|CudaLosses.AgreeWithTheCpu/ { print; next } { short = short $0 "\n" } END { printf "%s", short }')
  [ ${#tests[@]} -gt 0 ] || fail "no test ran"
  tally() {
    sort_tests
    echo "$((${#tests[@]} - ${#skipped[@]} - ${#missing[@]})) of ${#tests[@]} ran$(
      named ", failed: " "${failed[@]}")$(named "; skipped: " "${skipped[@]}")$(named "; not run: " "${missing[@]}")"
  }
  for i in "${!tests[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$parallel" ]; do wait -n; done
    one_test "$i" "${tests[i]}" &
  done
  wait
  sort_tests
  [ ${#failed[@]} = 0 ] || fail "$(tally)"
  [ ${#passed[@]} -gt 0 ] || fail "no test ran$(named "; skipped: " "${skipped[@]}")"
  echo "${#passed[@]} ran$(named ", ${#skipped[@]} skipped: " "${skipped[@]}")"
}
# Sorts `tests` by their results.
sort_tests() {
  local i name code
  passed=() failed=() skipped=() missing=()
  for i in "${!tests[@]}"; do
    name=${tests[i]}
    code=$(cat "$work/$i.code" 2>/dev/null)
    case $code in
      "") missing+=("$name") ;;
      0) passed+=("$name") ;;
      1) failed+=("$name") ;;
      124 | 137) failed+=("$name (over $test_limit s)") ;;
      skipped) skipped+=("$name") ;;
      none) failed+=("$name (ran no test)") ;;
      *) failed+=("$name (exit code $code)") ;;
    esac
  done
}
# one_test NUMBER NAME: writes the test's exit code to $work/NUMBER.code; instead of 0 "skipped" if it was skipped, or
# "none" if the program did not run it. Writes nothing if the piece ends before the test does.
one_test() {
  trap 'end_running; exit 143' TERM
  local began=$SECONDS code
  OMP_WAIT_POLICY=PASSIVE RK_REQUIRE_GPU=1 bounded "$test_limit" "$bin/cuda_test" --gtest_brief=1 "--gtest_filter=$2" \
    "--gtest_output=json:$work/$1.json" >"$work/$1.log" 2>&1
  code=$?
  if [ $code = 0 ]; then
    grep -q '^  "tests": 1,' "$work/$1.json" 2>/dev/null || code=none
    grep -q '"result": "SKIPPED"' "$work/$1.json" 2>/dev/null && code=skipped
  fi
  echo "$code" >"$work/$1.code"
  { echo "--- $2: exit code $code, $((SECONDS - began)) s"; cat "$work/$1.log"; } >"$work/$1.txt"
  cat "$work/$1.txt"
}

piece_description() {
  need_bin cudnn_test
  RK_REQUIRE_GPU=1 RK_GPU_DESCRIPTION=$results/description.json RK_GPU_ENGINES=$results/engines.txt \
    "$bin/cudnn_test" --gtest_brief=1 '--gtest_filter=GpuDescribed.*' || fail "cudnn_test ended with exit code $?"
  echo "$results/description.json, engines.txt"
}

# Each topic in a process of its own, like the tests; networks first, because only they run cuDNN's graphs.
piece_golden() {
  need_flag --device golden
  local topic code broken=() failed
  tally() {
    mapfile -t failed < <(sed -nE 's/^FAIL ([^ ]*).*/\1/p' "$said")
    echo "$(grep -c '^pass ' "$said") passed, ${#failed[@]} failed$(named ": " "${failed[@]}")$(
      named "; ended with an exit code: " "${broken[@]}")"
  }
  for topic in networks losses metrics; do
    bounded "$limit" "$bin/golden" tests/golden $topic --device cuda
    code=$?
    [ $code = 0 ] || broken+=("$topic $code")
  done
  [ ${#broken[@]} = 0 ] || fail "$(tally)"
  tally
}

# Runs that differ are no fault of the graph if two without one differ as well.
piece_replay() {
  need_flag --graph train
  local bn graph run=(--batches 20 --epochs 2)
  for bn in train frozen; do
    for graph in on off; do
      tiny_train --bn $bn --graph $graph "${run[@]}" --out "$work/$bn-$graph" 2>&1 | tee "$work/said" || exit 1
      [ $graph = off ] || ! grep -q 'cannot be captured' "$work/said" ||
        fail "graph on, batch norm $bn: the step was not captured, see above"
    done
    alike "$work/$bn-on" "$work/$bn-off" && continue
    tiny_train --bn $bn --graph off "${run[@]}" --out "$work/$bn-again"
    alike "$work/$bn-off" "$work/$bn-again" || fail "batch norm $bn: not deterministic without a graph either, see above"
    fail "graph on and off, batch norm $bn: the runs differ, see above"
  done
  echo "losses and metrics after 40 steps are the same, batch norm train and frozen"
}

piece_resume() {
  need_flag --precision train
  local run code epochs=30
  tiny_train --batches 20 --epochs $epochs --out "$work/whole"
  "$bin/train" "${tiny[@]}" --precision fp16 --batches 20 --epochs $epochs --out "$work/parts" &
  run=$!
  for _ in $(seq 600); do
    [ "$(wc -l 2>/dev/null <"$work/parts/metrics.jsonl" || echo 0)" -ge 3 ] && break
    kill -0 $run 2>/dev/null || break
    sleep 0.1
  done
  kill -TERM $run 2>/dev/null  # not SIGINT, which the shell makes background processes ignore
  wait $run
  code=$?
  [ $code != 0 ] || unfinished "the run was through before it could be stopped; give it more epochs than $epochs"
  [ $code = 143 ] || fail "stopped with SIGTERM, train ended with exit code $code"
  tiny_train --batches 20 --epochs $epochs --out "$work/parts" --resume auto
  same "$work/whole" "$work/parts" "whole and stopped"
  cmp "$work/whole/last.h5" "$work/parts/last.h5" || fail "last.h5 differs"
  echo "last.h5 has the same bytes"
}

# sanitize TOOL [FLAG VALUE]...: checks our kernels by themselves, then two training steps for each way of computing
# batch norm: by cuDNN in fp16, by our kernels in fp32. Each run gets a share of the time left; one that is ended before
# it finds anything, or that fails by itself, as a test does whose values are off, counts as not finished.
sanitize() {
  local tool=$1 check=() found=() broken=() late=() clean=0 known run parts=4 seconds code
  shift
  command -v compute-sanitizer >/dev/null || PATH=$PATH:/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer
  command -v compute-sanitizer >/dev/null || skip "compute-sanitizer is not there; it comes with the CUDA toolkit"
  need_bin cuda_test
  need_flag --precision train
  [ "$limit" -ge 60 ] || skip "$limit s are too little for it; give it a call of its own"
  check=(compute-sanitizer --tool "$tool")
  known=$(compute-sanitizer --help 2>&1)
  while [ $# -gt 0 ]; do
    if grep -qE -e "(^|[ ,])$1( |\$)" <<<"$known"; then
      check+=("$1" "$2")
    elif [ "$1" = --error-exitcode ]; then
      skip "this compute-sanitizer has no $1, without which it cannot be judged"
    else
      echo "this compute-sanitizer has no $1: left out"
    fi
    shift 2
  done
  tally() {
    echo "$(named "$tool: " "${found[@]}")${found[0]+, see above; }nothing found in $clean of 4$(
      named "; not finished: " "${late[@]}")$(named "; failed without a finding: " "${broken[@]}")"
  }
  for run in kernels "fp32 train" "fp16 train" "fp16 frozen"; do
    echo "--- $run"
    seconds=$(((limit - 10 - SECONDS) / (parts == 4 ? 2 : parts)))  # half of the time for our kernels
    parts=$((parts - 1))
    if [ "$run" = kernels ]; then
      RK_REQUIRE_GPU=1 sanitized $seconds "$bin/cuda_test" --gtest_brief=1 \
        '--gtest_filter=CudaKernels.AgreeWithDouble:*Row*:*Loss*'
    else
      sanitized $seconds "$bin/train" "${tiny[@]}" --precision "${run% *}" --bn "${run#* }" --batches 2 --epochs 1 \
        --out "$work/$run"
    fi
    code=$?
    if [ $code = 0 ]; then
      clean=$((clean + 1))
    elif over $code; then
      late+=("$run (over $seconds s)")
    elif [ $code = 9 ]; then
      found+=("$run")
    else
      broken+=("$run (exit code $code)")
    fi
  done
  [ ${#found[@]} = 0 ] || fail "$(tally)"
  [ $((${#late[@]} + ${#broken[@]})) = 0 ] || unfinished "$(tally)"
  echo "$tool finds nothing in our kernels and in two steps each, fp32 and fp16"
}
# Exit code 9 for a finding, as the tools have it that know --error-exitcode; otherwise the program's own.
sanitized() {
  bounded "$1" "${check[@]}" "${@:2}" >"$work/unsaid" 2>&1
  local code=$?
  clears $code || return 9
  return $code
}
# clears CODE: shows the captured output; fails if it holds a finding.
clears() {
  cat "$work/unsaid"
  ! grep -qE '^========= (Invalid|Misaligned|Barrier error|(Error|Warning): (Race|Potential))' "$work/unsaid"
}
# API errors are not reported: libraries try calls that fail and do without them. The slow tools check only our own
# kernels: those in namespace rk, whose mangled names contain 2rk.
errors=(--error-exitcode 9 --print-limit 20 --report-api-errors no)
piece_memcheck() { sanitize memcheck "${errors[@]}" --leak-check no; }
piece_racecheck() { sanitize racecheck "${errors[@]}" --kernel-name kernel_substring=2rk; }
piece_synccheck() { sanitize synccheck "${errors[@]}" --kernel-name kernel_substring=2rk; }
# initcheck must watch all kernels, because it sees writes only of kernels that it watches; but only reads by our
# kernels are findings.
piece_initcheck() {
  clears() {
    local words
    grep -v '^=========' "$work/unsaid"
    words=$(ours <"$work/unsaid")
    [ -z "$words" ] || { head -n 60 <<<"$words"; return 1; }
    [ "$1" = 0 ] || tail -n 20 "$work/unsaid"
  }
  sanitize initcheck --print-limit 100000 --report-api-errors no
}
# Prints those of initcheck's findings whose kernel is ours. A finding is a block of lines that begins with
# "Uninitialized" and names the kernel in its second line.
ours() {
  awk '/^========= Uninitialized/ { first = $0; next }
    first != "" { shown = $0 ~ /(at |:)(void )?rk::/; if (shown) print first; first = "" }
    shown && /^=========/'
}

# beside_pytorch PRECISION MODES BN BATCHES [--tune FOLDER FLAGS]: without PyTorch, ours alone.
beside_pytorch() {
  need_flag --precision bench step
  if ! has_python torchvision; then
    [[ $2 == eager* ]] || need_python torchvision  # ours is the same whatever it stands beside
    ours_alone "$1" "$3" "$4" "${@:5}"
    return
  fi
  "$python" tools/scripts/bench_pytorch.py --bench "$bin/bench" --device cuda --precision "$1" --modes "$2" --bn "$3" \
    --batch "$4" --rounds 1 --limit 60 --json "$results/$piece.json" "${@:5}"
}
# ours_alone PRECISION BN BATCHES [--tune FOLDER FLAGS]
ours_alone() {
  local precision=$1 bn batch flags times=() failed=()
  tally() { echo "ours alone, because $python has no torchvision: $(listed "${times[@]}")$(named "; not: " "${failed[@]}")"; }
  for bn in ${2//,/ }; do
    for batch in ${3//,/ }; do
      flags=(--repeats 50)
      [ $# = 3 ] || flags=(--tune "$5/plans-resnet50-$precision-$bn-$batch.txt" "${@:6}")
      if ! bounded "$limit" "$bin/bench" step --device cuda --precision "$precision" --bn "$bn" --batch "$batch" \
        "${flags[@]}" --json "$results/$piece-$bn-$batch.json"; then
        failed+=("$bn $batch")
        continue
      fi
      times+=("$bn $batch: $(number step_ms "$results/$piece-$bn-$batch.json") ms")
    done
  done
  [ ${#failed[@]} = 0 ] || fail "$(tally)"
  tally
}
# tuned BN: a tuning that its time ends is used as far as it came, and another call continues it. The 80 seconds not
# given to it are for PyTorch, the step itself and a group of convolutions begun in its last second.
tuned() {
  need_flag --tune-seconds bench step
  local seconds=$((limit - 80 < 100 ? limit - 80 : 100))
  [ $seconds -ge 40 ] || skip "$limit s leave $seconds s for tuning, too few to find anything; give it a call of its own"
  mkdir -p "$plans"
  beside_pytorch fp16 eager "$1" 256 --tune "$plans" --tune-seconds $seconds --repeats 10
}
piece_step() { beside_pytorch fp16 eager train,frozen 256; }
piece_step-compile() { beside_pytorch fp16 compile train,frozen 256; }
piece_tuned-train() { tuned train; }
piece_tuned-frozen() { tuned frozen; }
piece_step-batches() { beside_pytorch fp16 eager,graphs train,frozen 64,128,256; }
piece_compile-batches() { beside_pytorch fp16 compile,compile-graphs train,frozen 128,64; }
piece_step-bf16() { beside_pytorch bf16 eager,graphs train,frozen 64,128,256; }
piece_step-tf32() { beside_pytorch tf32 eager,graphs train,frozen 64,128,256; }

# The sizes in the order of their worth, because not all may be reached: 4096 tells how far kernels are from their
# floors, 384 is a usual batch, and 128 is launches alone.
piece_losses() {
  need_bin bench
  need_bin probe
  local losses=() loss n row share rows=0 slow=0 broken=()
  for loss in $("$bin/probe" --help | sed -nE '/^Losses/,$s/^  ([a-z_]+) .*/\1/p'); do
    says 'reads /embeddings' "$bin/probe" --loss "$loss" --help && losses+=("$loss")
  done
  : >"$results/losses.jsonl"
  tally() { echo "$rows measured, $slow more than twice their floor$(named "; did not run: " "${broken[@]}")"; }
  for n in 4096 384 1024 8192 128; do
    for loss in "${losses[@]}"; do
      if ! bounded "$run_limit" "$bin/bench" loss --loss "$loss" --n $n --dim 512 --per-class 4 --repeats 20 \
        --device cuda --json "$work/row.json"; then
        broken+=("$loss $n")
        continue
      fi
      row=$(tr -d '\n' <"$work/row.json")
      echo "$row" >>"$results/losses.jsonl"
      rows=$((rows + 1))
      share=$(sed -nE 's/.*"share": *([0-9.eE+-]+).*/\1/p' <<<"$row")
      echo "$loss $n: share of its floor $share"
      awk -v share="$share" 'BEGIN { exit !(share < 0.5) }' && slow=$((slow + 1))
    done
  done
  [ $rows -gt 0 ] || fail "no loss ran"
  [ ${#broken[@]} = 0 ] || fail "$(tally)"
  tally
}

piece_losses-peers() {
  need_bin bench
  need_python pytorch_metric_learning
  # The authors' own code is cloned; without a network these peers are left out, with the reason.
  "$python" tools/scripts/bench_peers.py --device cuda --python "$python" --bin "$bin" --n 128,512,2048,8192 \
    --memory 40 --limit 60 --repeats 20 --json "$results/losses-peers.json" ||
    fail "bench_peers.py ended with exit code $?"
  echo "$(grep -c '"ratio"' "$results/losses-peers.json") lines beside a peer"
}

piece_eval() {
  need_bin bench
  if ! has_python torch; then
    "$bin/bench" eval --device cuda --n 60502 --dim 512 --classes 11316 --json "$results/eval.json" ||
      fail "bench eval ended with exit code $?"
    echo "ours alone, because $python has no torch: $(number total_ms "$results/eval.json") ms"
    return
  fi
  "$python" tools/scripts/bench_retrieval_peers.py --bench "$bin/bench" --limit 60 --json "$results/eval.json"
}

# Drawn pictures, and photos: copies of one of usual size, because only files are decoded.
piece_loader() {
  need_flag --precision bench loader
  local photo=tests/golden/images/files/q75_420.jpg i
  loaded() {
    "$bin/bench" loader --data "$1" --image-size 224 --batch 256 --images 2048 --precision fp16 --device cuda \
      --json "$results/$2.json" || fail "bench loader --data ${1%%:*} ended with exit code $?"
  }
  [ -e "$photo" ] || skip "$photo is missing"
  mkdir -p "$work/photos/of"
  for i in {0..63}; do cp "$photo" "$work/photos/of/$i.jpg"; done
  loaded glyphs:size=224 loader
  loaded "folder:$work/photos,splits=none" loader-photos
}

# profiled step|loss FLAGS: copies the profilers' files to table-PIECE.*; table-PIECE.txt also says what ran.
profiled() {
  need_bin bench
  local what=$1 code
  tally() {
    local file
    for file in "$build/profile/$what".*; do
      [ -s "$file" ] && cp "$file" "$results/table-$piece.${file#"$build/profile/$what."}"
    done
    awk '/ calls of |^without plans|names an engine for/ { printf "%s%s", between, $0; between = "; " }
      END { if (between != "") print "" }' "$results/table-$piece.txt" 2>/dev/null
  }
  rm -f "$results/table-$piece".*
  LIMIT=$((limit - 20)) bounded "$limit" tools/scripts/profile.sh "$what" "$build" "${@:2}"
  code=$?
  grep -q 'neither nsys nor ncu' "$said" && exit 77
  tally >"$work/found"
  [ $code = 0 ] || exit 1
  [ -s "$results/table-$piece.json" ] || skip "no table: ncu is not there"
  cat "$work/found"
}
# One line for each fusion, those that move most bytes first, so that a run that is cut off has the larger ones; it also
# prints their sums and writes them.
piece_fusions() {
  need_flag --fusions bench step
  # shellcheck disable=SC2317  # ended() calls it
  tally() { grep 'fusing only where it gains' "$said"; }
  "$bin/bench" step --device cuda --precision fp16 --batch 256 --bn train --repeats 10 --fusions \
    --json "$results/fusions.json" || fail "bench step ended with exit code $?"
}

# Uses the plans of a tuned piece if there are any of this GPU in the results.
profiled_step() {
  need_flag --precision bench step
  local file=$plans/plans-resnet50-fp16-$1-256.txt flags=()
  [ -s "$file" ] && flags=(--plans "$file")
  profiled step --batch 256 --bn "$1" "${flags[@]}"
}
piece_profile-train() { profiled_step train; }
piece_profile-frozen() { profiled_step frozen; }
piece_profile-loss() { profiled loss; }

piece_omniglot() {
  need_flag --precision train
  local data=${OMNIGLOT:-}
  [ -n "$data" ] || skip "OMNIGLOT=... does not name the data"
  [ -d "$data/images_background_small1" ] || skip "$data/images_background_small1 is not there"
  "$bin/train" --recipe recipes/omniglot.toml --data "folder:$data/images_background_small1" --test-data \
    "folder:$data/images_background_small2,categories=Japanese_(katakana)+Sanskrit+Tagalog" --device cuda --seed 0 \
    --out "$work/omniglot" || fail "train ended with exit code $?"
  cp "$work/omniglot/metrics.jsonl" "$results/omniglot.jsonl"
  local recalls
  mapfile -t recalls < <(sed -nE 's/.*"recall_at_1": ?([0-9.]+).*/\1/p' "$results/omniglot.jsonl")
  [ ${#recalls[@]} -ge 2 ] || fail "metrics.jsonl has no R@1 before and after training"
  echo "R@1 ${recalls[0]} before, ${recalls[-1]} after training"
}

piece_two-gpus() {
  need_flag --precision train
  [ "$(smi -L | grep -c GPU)" -ge 2 ] || skip "one GPU"
  command -v mpirun >/dev/null || skip "mpirun is not there"
  # With frozen batch norm the runs differ only by rounding, which grows from step to step: hence only five steps.
  local flags=(--bn frozen --batches 5 --epochs 1 --optimizer sgd --lr 0.001 --precision fp32)
  tiny_train "${flags[@]}" --out "$work/one"
  mpirun --allow-run-as-root -n 2 "$bin/train" "${tiny[@]}" "${flags[@]}" --out "$work/two" >"$work/said" 2>&1
  local code=$?
  cat "$work/said"
  ! grep -q 'this build has no MPI' "$work/said" || skip "this build has no MPI; build here, after installing libopenmpi-dev"
  [ $code = 0 ] || fail "two processes ended with exit code $code"
  local one two
  one=$(sed -nE 's/.*"loss": ?([0-9.eE+-]+).*/\1/p' "$work/one/metrics.jsonl" | tail -n 1)
  two=$(sed -nE 's/.*"loss": ?([0-9.eE+-]+).*/\1/p' "$work/two/metrics.jsonl" | tail -n 1)
  echo "mean loss of 5 steps: $one on one GPU, $two on two"
  awk -v a="$one" -v b="$two" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a > 0 && d <= 1e-4 * a) }'
}

clocks() {
  smi --format=csv,noheader --query-gpu=clocks.sm,clocks.mem,clocks.max.sm,power.draw,temperature.gpu | head -n 1
}

# run_piece NAME SECONDS: runs it in a process of its own. Its text gets a header that describes the machine, without
# which no result means anything. Until it ends its text is NAME.part, among the results, and is packed with them now
# and then: who ends the call asks nobody.
run_piece() {
  local name=$1 left=$2 before started code result finding next
  local log=$results/$name.part
  before=$(clocks)
  started=$SECONDS
  {
    echo "device: $device"
    echo "date: $(date -u +%Y-%m-%dT%H:%M:%SZ)"
    echo "commit: $commit"
    echo "clocks sm, memory, most sm, power, temperature before: $before"
    echo
  } >"$log"
  # Appending: tests beside one another print at the same time, and cat's copies at a shared offset overwrite each
  # other.
  LIMIT=$left timeout --kill-after=20 "$left" "$BASH" "$self" --inside "$name" >>"$log" 2>&1 &
  started_piece=$!
  next=$((SECONDS + pack_every))
  while kill -0 $started_piece 2>/dev/null; do
    if [ $SECONDS -ge $next ]; then
      pack_texts
      next=$((SECONDS + pack_every))
    fi
    sleep 0.2
  done
  wait $started_piece
  code=$?
  started_piece=
  if [ $code != 0 ] && [ -n "$ended" ]; then code=143; fi  # not every timeout hands on how the piece ended
  finding=$(tail -n 1 "$log")
  case $code in
    0) result=passed ;;
    75 | 143) result=unfinished ;;  # 143: the call was ended
    77) result=skipped ;;
    124 | 137)
      result="over $left s"
      [[ $finding == "cut off: "* ]] ||
        finding="cut off; last: $(grep -vE '(^|[0-9] )Terminated' "$log" | tail -n 1)"
      ;;
    *) result=failed ;;
  esac
  {
    echo "piece: $name"
    echo "result: $result"
    echo "finding: $(cut -c 1-240 <<<"$finding")"
    echo "seconds: $((SECONDS - started))"
    echo "clocks after: $(clocks)"
    cat "$log"
  } >"$results/$name.txt"
  rm -f "$log"
  printf '%-16s%-12s%6d s  %s\n' "$name" "$result" $((SECONDS - started)) "$(value finding "$results/$name.txt")"
  [ $code = 0 ] || [ $code = 77 ]
}
# Packs the results so far, so that a later piece cannot lose them. The profilers' own files may be more than what may
# leave the machine; they must not keep the rest from leaving it.
pack_results() {
  [ -n "${ARCHIVE:-}" ] || return 0
  pack_texts
  local own=("$results"/*.ncu-rep "$results"/*.nsys-rep)
  mapfile -t own < <(for file in "${own[@]}"; do [ ! -f "$file" ] || basename "$file"; done)
  [ ${#own[@]} = 0 ] || pack "${ARCHIVE%.tar.gz}-profiles.tar.gz" "${own[@]}"
}
pack_texts() { [ -z "${ARCHIVE:-}" ] || pack "$ARCHIVE" "--exclude=*.ncu-rep" "--exclude=*.nsys-rep" .; }
# pack ARCHIVE ARGUMENTS...: of tar, within the results. Its exit code 1 tells of a file that grew meanwhile.
pack() {
  tar -C "$results" --warning=no-file-changed -czf "$1.part" "${@:2}"
  [ $? -gt 1 ] || mv "$1.part" "$1"
}
value() { sed -n "s/^$1: //p" "$2" | head -n 1; }

# Every piece this machine has run so far, also in earlier calls.
closing_table() {
  local name file
  echo
  echo '| piece | result | seconds | GPU | finding |'
  echo '|---|---|---|---|---|'
  for name in $names; do
    file=$results/$name.txt
    [ -f "$file" ] || continue
    echo "| $name | $(value result "$file") | $(value seconds "$file") | $(value device "$file" | cut -d , -f 1) | $(
      value finding "$file" | tr '|' '/') |"
  done
}

if [ "${1:-}" = --inside ]; then
  piece=$2
  said=$results/$piece.part  # all that the piece has printed
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  exec 3>&1
  trap ended TERM
  "piece_$piece"
  exit
fi
case ${1:-} in
  "") echo "error: no piece named; list shows them, all runs them" >&2; exit 2 ;;
  list) sed '/^$/d' <<<"$pieces"; exit ;;
  all) wanted=$names ;;
  *) wanted=$* ;;
esac
asked=$wanted
wanted=""
for name in $asked; do
  if grep -qx -e "$name" <<<"$names"; then
    wanted+=" $name"
  elif [ -n "$(group "$name")" ]; then
    wanted+=" $(group "$name")"
  else
    echo "error: $name: no such piece; tools/scripts/gpu_proof.sh list shows them" >&2
    exit 2
  fi
done
# NVIDIA's containers have nvidia-smi and the driver's libraries there. The programs look beside the first python in PATH
# for the CUDA libraries of its wheels.
PATH=$PATH:/usr/local/nvidia/bin
for folder in /usr/local/nvidia/lib64 /usr/local/nvidia/lib; do
  [ ! -d $folder ] || export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
done
[[ $python != */* ]] || PATH=$(dirname "$python"):$PATH
if ! command -v nvidia-smi >/dev/null || ! says GPU smi -L; then
  echo "error: no NVIDIA GPU here (nvidia-smi lists none); run this on a machine that has one" >&2
  exit 5
fi
if [ ! -d "$bin" ]; then
  echo "error: $bin is not there; build first, or BUILD=... names another folder" >&2
  exit 3
fi
# A program that was built elsewhere may lack libraries here, or use instructions that this processor does not have.
for program in bench train probe; do
  [ -x "$bin/$program" ] || continue
  if ! why=$("$bin/$program" --version 2>&1); then
    why=${why:-it ended at once, as programs do that were built for another processor: -DRK_NATIVE=OFF builds for any}
    echo "error: $bin/$program does not start here: $(tail -n 1 <<<"$why")" >&2
    exit 3
  fi
done
# On a machine where nobody has used it, torch is read from the disk for half a minute: meanwhile, not in a piece.
timeout 120 "$python" -c 'import torch, torchvision' >/dev/null 2>&1 &
helpers=($!)
trap '{ kill "${helpers[@]}"; wait "${helpers[@]}"; } 2>/dev/null' EXIT
# What fails on the device in the smallest step would fail every piece, and each of their tests, by itself. In fp16, in
# which cuDNN also compiles kernels. Once more if it takes too long: on a machine where nobody has used them, CUDA's
# libraries are read from the disk.
smallest_step() {
  timeout --kill-after=5 "$run_limit" "$bin/bench" step --arch resnet20 --image-size 32 --batch 8 --repeats 1 \
    --precision fp16 --device cuda --quiet 2>&1 >/dev/null
}
# The folders of CUDA's libraries among the packages of $python, with colons between them.
wheels_of_python() {
  "$python" -c "import glob, sysconfig
print(':'.join(sorted(glob.glob(sysconfig.get_path('purelib') + '/nvidia/*/lib'))))" 2>/dev/null
}
if [ -x "$bin/bench" ]; then
  why=$(smallest_step)
  code=$?
  if over $code; then
    why=$(smallest_step)
    code=$?
  fi
  # A library that the system has may be too old, and hide the one of the wheels.
  if [ $code = 5 ] && [ -z "${RK_CUDA_LIBRARIES:-}" ] && [[ $why == *RK_CUDA_LIBRARIES* ]]; then
    wheels=$(wheels_of_python)
    if [ -n "$wheels" ]; then
      tail -n 1 <<<"$why"
      echo "once more with the libraries of $python's wheels: RK_CUDA_LIBRARIES=$wheels"
      export RK_CUDA_LIBRARIES=$wheels
      why=$(smallest_step)
      code=$?
    fi
  fi
  if over $code; then
    why="error: the smallest step does not end within $run_limit s"
  elif [ $code -gt 128 ]; then
    why="error: the smallest step ends with exit code $code, a signal's; it last said: $(tail -n 1 <<<"$why")"
  fi
  if [ $code = 5 ] || [ $code -ge 124 ]; then
    tail -n 1 <<<"$why" >&2
    [ "${ANYWAY:-}" = yes ] || exit 5
  fi
fi
# Without any program that uses it the driver would leave the GPU, and take seconds to begin again, in each of the
# hundreds of programs that follow.
nvidia-smi --loop=600 >/dev/null 2>&1 &
helpers+=($!)
device=$(smi --query-gpu=name,memory.total,driver_version --format=csv,noheader | head -n 1)
commit=${COMMIT:-}
if [ -z "$commit" ]; then
  commit=$(git rev-parse HEAD 2>/dev/null || echo unknown)
  [ -z "$(git status --porcelain --untracked-files=no 2>/dev/null)" ] || commit+=", with changes"
fi
slug=$(cut -d , -f 1 <<<"$device" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9-')
export results=${RESULTS:-bench/results/$(date -u +%F)-$slug}
export plans=$results/$slug  # of engines that were timed, which are for one kind of GPU
# Before anything runs: results that cannot be written would cost the whole call.
for file in "$results/.try" ${ARCHIVE:+"$ARCHIVE.part"}; do
  if ! { mkdir -p "$(dirname "$file")" && : >"$file" && rm "$file"; } 2>/dev/null; then
    echo "error: $(dirname "$file"): nothing can be written there; name another with RESULTS=... or ARCHIVE=..." >&2
    exit 3
  fi
done
if [ -f "${ARCHIVE:-}" ] && [ -z "$(ls -A "$results")" ]; then
  tar -C "$results" -xzf "$ARCHIVE" && echo "going on from the results in $ARCHIVE"
fi
echo "$device, commit $commit, results in $results"
# Whoever ends the call ends the piece as its limit would, so that what it found is kept.
started_piece=
ended=
trap 'ended=yes; [ -z "$started_piece" ] || kill $started_piece' INT TERM
failures=0
later=0  # seconds kept for the pieces that have not begun
for name in $wanted; do later=$((later + $(limit_of "$name"))); done
for name in $wanted; do
  left=$(limit_of "$name")
  later=$((later - left))
  if [ -n "${TIME:-}" ]; then
    spare=$((TIME - SECONDS - later))
    left=$((spare > left ? spare : left))
    left=$((TIME - SECONDS < left ? TIME - SECONDS : left))
    if [ $left -le 0 ]; then
      echo "$name and what comes after it: not begun, $TIME s are over"
      break
    fi
  fi
  left=$((limit < left ? limit : left))
  run_piece "$name" "$left" || failures=$((failures + 1))
  closing_table >"$results/summary.md"
  pack_results
  [ -z "$ended" ] || break
done
cat "$results/summary.md"
[ $failures = 0 ]
