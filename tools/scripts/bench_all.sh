#!/usr/bin/env bash
# Every benchmark in its usual sizes, of two losses, one after the other; the JSON is in BUILD/bench.
# Usage: tools/scripts/bench_all.sh BUILD
set -euo pipefail
build=$1
out=$build/bench
mkdir -p "$out"

bench() {
  local name=$1
  shift
  echo "== bench $*"
  "$build/bin/bench" "$@" --quiet --json "$out/$name.json"
}

for bn in train frozen; do
  bench "step_$bn" step --arch resnet50 --batch 16 --image-size 224 --bn $bn --loss fastap
done
for loss in fastap smooth_ap; do
  for n in 128 384 1024 4096; do
    bench "loss_${loss}_$n" loss --loss $loss --n $n --dim 512 --per-class 4
  done
done
bench rank rank
bench eval eval --n 60502 --dim 512 --classes 11316
bench loader loader --data glyphs --image-size 64
echo "JSON: $out"
