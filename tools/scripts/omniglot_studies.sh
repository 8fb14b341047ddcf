#!/usr/bin/env bash
# Two studies of the papers on Omniglot, as markdown tables: overfitting (Oi et al. 2021: the divergence of
# similarities on training and on held-out classes over the epochs, and what the order of classes in the split does)
# and robustness against merged classes (Li et al. 2022). Recipes: recipes/omniglot_overfitting.toml and
# recipes/omniglot_merged.toml.
# Usage: tools/scripts/omniglot_studies.sh DATA OUT [BUILD]
#   DATA   the folder with images_background_small1 and images_background_small2, unpacked
#   OUT    a folder for the eight runs, whose records `eval --report` draws; BUILD default build
# FLAGS, from the environment, go to each train: FLAGS='--epochs 2 --batches 4'
set -euo pipefail
data=${1:?the folder with images_background_small1 and images_background_small2}
out=${2:?a folder for the runs}
build=${3:-build}
root=$(cd "$(dirname "$0")/../.." && pwd)
train_set=$data/images_background_small1
test_set="folder:$data/images_background_small2,categories=Japanese_(katakana)+Sanskrit+Tagalog"
for folder in "$train_set" "$data/images_background_small2"; do
  if [ ! -d "$folder" ]; then
    echo "error: $folder: no such folder; unzip $(basename "$folder").zip there" >&2
    exit 3
  fi
done
if ! command -v python3 >/dev/null; then
  echo "error: no python3, which makes the tables" >&2
  exit 3
fi
mkdir -p "$out"

# run NAME FLAG...: trains into $out/NAME, or goes on there, unless that run is finished. What was begun with other
# flags, as in a trial, must not pass for the study.
run() {
  local name=$1 code flags
  shift
  flags="$* ${FLAGS:-}"
  if [ -d "$out/$name" ] && [ "$(cat "$out/$name.flags" 2>/dev/null)" != "$flags" ]; then
    echo "error: $out/$name: was begun with other flags; give another OUT, or remove it" >&2
    exit 3
  fi
  printf '%s\n' "$flags" >"$out/$name.flags"
  [ -f "$out/$name/finished" ] && return
  # shellcheck disable=SC2086  # flags
  "$build/bin/train" "$@" ${FLAGS:-} --seed 0 --quiet --resume auto --out "$out/$name" >"$out/$name.log" 2>&1 || {
    code=$?
    tail -n 5 "$out/$name.log" >&2
    exit "$code"
  }
  touch "$out/$name/finished"
}
# number KEY FILE: prints a number from a file that holds one JSON object.
number() {
  python3 -c 'import json, sys; print(f"""{json.load(open(sys.argv[2]))["metrics"][sys.argv[1]]:.3f}""")' "$1" "$2"
}

for order in default random; do
  run "overfitting_$order" --recipe "$root/recipes/omniglot_overfitting.toml" --data \
    "folder:$train_set,categories=Balinese+Early_Aramaic+Greek+Korean,val_classes=0.2,val_order=$order,val_seed=1"
  "$build/bin/eval" --checkpoint "$out/overfitting_$order/best.h5" --data "$test_set" --quiet --force \
    --json "$out/overfitting_$order.json" >/dev/null
done
echo '| classes in order | epoch | JSD, training | JSD, held out | mean of positives, training | held out |'
echo '|---|---|---|---|---|---|'
for order in default random; do
  python3 - "$out/overfitting_$order/metrics.jsonl" "$order" <<'END'
import json, sys
for line in map(json.loads, open(sys.argv[1])):
    train = line["train"]
    print(f'| {sys.argv[2]} | {line["epoch"]} | {train["jsd"]:.3f} | {line["jsd"]:.3f} | '
          f'{train["pos_mean"]:.3f} | {line["pos_mean"]:.3f} |')
END
done
echo
echo '| classes in order | R@1 | MAP@R | JSD |'
echo '|---|---|---|---|'
for order in default random; do
  json=$out/overfitting_$order.json
  echo "| $order | $(number recall_at_1 "$json") | $(number map_at_r "$json") | $(number jsd "$json") |"
done

echo
echo '| loss | training classes | R@1 | MAP@R |'
echo '|---|---|---|---|'
for loss in pnp_ib pnp_dq smooth_ap; do
  for merge in 1 3; do
    name=merged_${loss}_$merge
    run "$name" --recipe "$root/recipes/omniglot_merged.toml" --loss "$loss" --data "folder:$train_set,merge=$merge" \
      --test-data "$test_set"
    "$build/bin/eval" --checkpoint "$out/$name/best.h5" --data "$test_set" --quiet --force --json "$out/$name.json" \
      >/dev/null
    echo "| \`$loss\` | $([ $merge = 1 ] && echo as they are || echo three as one) |" \
      "$(number recall_at_1 "$out/$name.json") | $(number map_at_r "$out/$name.json") |"
  done
done
