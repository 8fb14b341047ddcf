#!/usr/bin/env bash
# Trains every loss for one epoch on real handwriting, with recipes/omniglot.toml as far as one epoch allows, and
# prints a markdown table of R@1 and MAP@R on characters of alphabets never trained on, before and after. Fails if a
# loss diverges or does not improve R@1.
# Usage: tools/scripts/omniglot_losses.sh DATA [BUILD [LOSS...]]
#   DATA   the folder with images_background_small1 and images_background_small2, unpacked
#   BUILD  default build; LOSS default: every registered loss that trains embeddings
# FLAGS, from the environment, go to each train: FLAGS='--threads 1'
set -uo pipefail
export LC_ALL=C  # printf reads 0.5, whatever the user's language
data=${1:?the folder with images_background_small1 and images_background_small2}
build=${2:-build}
shift $(($# < 2 ? $# : 2))
losses=("$@")
root=$(cd "$(dirname "$0")/../.." && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for part in images_background_small1 images_background_small2; do
  if [ ! -d "$data/$part" ]; then
    echo "error: $data/$part: no such folder; unzip $part.zip there" >&2
    exit 3
  fi
done

if [ ${#losses[@]} -eq 0 ]; then
  # Losses on scores (rambo_map, rambo_apc) train no embeddings.
  known=$("$build/bin/probe" --help) || exit 3
  for name in $(sed -nE '/^Losses/,$s/^  ([a-z_]+) .*/\1/p' <<<"$known"); do
    grep -q 'reads /embeddings' <<<"$("$build/bin/probe" --loss "$name" --help)" && losses+=("$name")
  done
fi

# Where one epoch from random weights needs other values than the recipe, for all losses alike: batches of 32 make
# 85 steps of the 2,720 images, those of 128 only 21; batch norm keeps its initial statistics (mean 0, variance 1),
# because running ones follow too slowly to be compared with the untrained network; 32 pixels take a quarter of the
# time.
settings=(--image-size 32 --resize 32 --batch 32 --batches 85 --bn frozen)
# Losses that compare with fixed similarities or with proxies, not with other items, push every embedding of an
# untrained network the same way: a third of the rate keeps them from undoing it. Classes that come once in an
# epoch teach proxies little, so nsl draws images at random, as its paper does.
declare -A own=([contrastive]='--lr 3e-5' [proxy_anchor]='--lr 3e-5' [nsl]='--lr 3e-5 --sampler random')

# number KEY FILE LINE: prints a number from a line of metrics.jsonl.
number() { sed -n "$3p" "$2" | sed -nE "s/.*\"$1\": ?([0-9.eE+-]+).*/\1/p"; }

failures=0
echo '| loss | R@1 before | R@1 after | MAP@R before | MAP@R after | training, s | |'
echo '|---|---|---|---|---|---|---|'
for loss in "${losses[@]}"; do
  run=$out/run
  rm -rf "$run"
  # shellcheck disable=SC2086  # flags
  "$build/bin/train" --recipe "$root/recipes/omniglot.toml" --data "folder:$data/images_background_small1" \
    --test-data "folder:$data/images_background_small2,categories=Japanese_(katakana)+Sanskrit+Tagalog" \
    "${settings[@]}" ${own[$loss]:---lr 1e-4} --loss "$loss" ${FLAGS:-} --epochs 1 --seed 0 --out "$run" >"$out/log" 2>&1
  code=$?
  if [ $code -ne 0 ]; then
    echo "| \`$loss\` | | | | | | **exit $code**: $(grep '^error:' "$out/log" | tail -n 1) |"
    failures=$((failures + 1))
    continue
  fi
  metrics=$run/metrics.jsonl
  before=$(number recall_at_1 "$metrics" 1)
  after=$(number recall_at_1 "$metrics" 2)
  verdict=$(awk -v a="$before" -v b="$after" 'BEGIN { print (b > a) ? "gains" : "**does not gain**" }')
  [ "$verdict" = gains ] || failures=$((failures + 1))
  printf '| `%s` | %.3f | %.3f | %.3f | %.3f | %.0f | %s |\n' "$loss" "$before" "$after" \
    "$(number map_at_r "$metrics" 1)" "$(number map_at_r "$metrics" 2)" \
    "$(number seconds "$metrics" 2)" "$verdict"
done
exit $((failures > 0))
