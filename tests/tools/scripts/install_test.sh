#!/usr/bin/env bash
# What is installed: programs that start under their names, man pages with every flag, completion that completes.
# Usage: tests/tools/scripts/install_test.sh CMAKE BUILD
set -euo pipefail
cmake=$1
build=$2
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failed=0
check() {  # WHAT COMMAND...
  local what=$1
  shift
  "$@" >/dev/null 2>&1 || { echo "failed: $what" >&2; failed=1; }
}

(umask 077 && PATH="$(dirname "$cmake"):$PATH" MAKEFLAGS="" make -C "$(dirname "$0")/../../.." \
  --no-print-directory install BUILD="$build" PREFIX="$root" >/dev/null)
check "others can enter every folder" test -z "$(find "$root" -mindepth 1 -type d ! -perm -005)"
for program in train eval probe bench convert; do
  name=rankine-$program
  check "$name starts" "$root/bin/$name" --version
  for flag in $("$build/bin/$program" --help | grep -oE '^  (-[a-z],)?--[a-z0-9-]+' | grep -oE -e '--.*'); do
    check "the page of $name tells of $flag" grep -qF -- "${flag//-/\\-}" "$root/share/man/man1/$name.1"
  done
done
page=$root/share/man/man1/rankine-convert.1
check "examples call programs as they are installed" grep -qF 'rankine\-convert resnet50.pth' "$page"
check "and so do references to others" grep -qF 'rankine\-train \-\-weights' "$page"
check "no program is called as in the build" test -z "$(grep -hE '(^|[ (`])(train|eval|probe|bench|convert) \\-' "$root"/share/man/man1/*)"
check "the page of bench tells of its subcommands' flags" grep -qF '\-\-nodes' "$root/share/man/man1/rankine-bench.1"
check "recipes" test -s "$root/share/rankine/recipes/omniglot.toml"
for file in README.md LICENSE CHANGELOG.md docs/losses.md; do check "$file" test -s "$root/share/doc/rankine/$file"; done
for link in $(grep -oE '\]\([a-zA-Z/]+\.[a-z]+\)' "$root/share/doc/rankine/README.md" | tr -d ']()'); do
  check "README's link to $link" test -e "$root/share/doc/rankine/$link"
done

complete_word() {  # NAME WORD PLACE: what bash offers for it
  (
    # shellcheck disable=SC1090
    source "$root/share/bash-completion/completions/$1"
    COMP_CWORD=$3 COMPREPLY=()
    "_${1//-/_}" "$1" "$2"
    echo "${COMPREPLY[*]}"
  )
}
expect() {  # IS SHOULD
  [ "$1" = "$2" ] || { echo "failed: completion offers '$1', not '$2'" >&2; failed=1; }
}
expect "$(complete_word rankine-train --rec 3)" "--recipe"
expect "$(complete_word rankine-bench st 1)" "step"
expect "$(complete_word rankine-bench --nod 2)" "--nodes"
expect "$(complete_word rankine-eval runs/ 2)" ""
exit $failed
