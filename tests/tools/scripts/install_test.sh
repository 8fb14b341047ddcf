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

(umask 077 && PATH="$(dirname "$cmake"):$PATH" MAKEFLAGS="" env -u DESTDIR make -C "$(dirname "$0")/../../.." \
  --no-print-directory install BUILD="$build" PREFIX="$root" >/dev/null)
check "others can enter every folder" test -z "$(find "$root" -mindepth 1 -type d ! -perm -005)"
for program in train eval probe bench convert; do
  name=rankine-$program
  check "$name starts" "$root/bin/$name" --version
  check "$name looks for libraries in no folder of the system by itself" test -z "$(
    readelf -d "$root/lib/rankine/$program" | grep -E 'R(UN)?PATH.*(\[|:)/usr/lib/')"
  for flag in $("$build/bin/$program" --help | grep -oE '^  (-[a-z],)?--[a-z0-9-]+' | grep -oE -e '--.*'); do
    check "the page of $name tells of $flag" grep -qF -- "${flag//-/\\-}" "$root/share/man/man1/$name.1"
  done
done
page=$root/share/man/man1/rankine-convert.1
check "examples call programs as they are installed" grep -qF 'rankine\-convert resnet50.pth' "$page"
check "and so do references to others" grep -qF 'rankine\-train \-\-weights' "$page"
check "no program is called as in the build" test -z "$(grep -hE '(^|[ (`])(train|eval|probe|bench|convert) \\-' "$root"/share/man/man1/*)"
check "the page of bench tells of its subcommands' flags" grep -qF '\-\-nodes' "$root/share/man/man1/rankine-bench.1"
for code in $(sed -n '/^enum class ExitCode/,/^}/s/.* = \([0-9]*\),/\1/p' "$(dirname "$0")/../../../engine/base/error.h") 130; do
  check "the page of train tells of the exit status $code" grep -qE "^$code(,|\$)" "$root/share/man/man1/rankine-train.1"
done
check "pages name each other" grep -qF 'rankine\-eval (1)' "$root/share/man/man1/rankine-train.1"
check "an example's introduction is no section" test -z "$(grep -h '^.SH.*A first run' "$root"/share/man/man1/*)"
check "recipes" test -s "$root/share/rankine/recipes/omniglot.toml"
for file in README.md LICENSE CHANGELOG.md docs/losses.md; do check "$file" test -s "$root/share/doc/rankine/$file"; done
for page in "$root"/share/doc/rankine/README.md "$root"/share/doc/rankine/docs/*.md; do
  for link in $(grep -oE '\]\([a-zA-Z0-9_./-]+' "$page" | cut -c 3-); do
    case $link in http*) continue ;; esac
    check "the link of ${page##*/} to $link" test -e "$(dirname "$page")/$link"
  done
done
check "every flag's description stands apart from it" test -z "$(
  grep -hE '^\\fB.*=[^ ]+ [a-z]' "$root"/share/man/man1/*)"

complete_line() {  # LINE: what bash offers for its last word
  (
    read -ra COMP_WORDS <<<"${1//=/ = }"  # bash parts words at =, too
    [[ $1 != *" " ]] || COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    # shellcheck disable=SC1090
    source "$root/share/bash-completion/completions/${COMP_WORDS[0]}"
    "_${COMP_WORDS[0]//-/_}" "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    echo "${COMPREPLY[*]}"
  )
}
expect() {  # IS SHOULD
  [ "$1" = "$2" ] || { echo "failed: completion offers '$1', not '$2'" >&2; failed=1; }
}
expect "$(complete_line 'rankine-train --data x --rec')" "--recipe"
expect "$(complete_line 'rankine-eval --data runs/')" ""
expect "$(complete_line 'rankine-probe --sho')" "--show"
expect "$(complete_line 'rankine-train --arch r')" "resnet20 resnet18 resnet50"
expect "$(complete_line 'rankine-train --arch=goo')" "googlenet"
expect "$(complete_line 'rankine-train --loss smo')" "smooth_ap"
expect "$(complete_line 'rankine-train --sampler c')" "category"
expect "$(complete_line 'rankine-train --resume ')" "never auto"
expect "$(complete_line 'rankine-train --device ')" "auto cpu cuda"
expect "$(complete_line 'rankine-convert --device ')" "auto cpu"
expect "$(complete_line 'rankine-eval --split q')" "query"
expect "$(complete_line 'rankine-eval --weights x --epochs ')" ""
expect "$(complete_line 'rankine-convert ')" ""
expect "$(complete_line 'rankine-bench ')" "step loss rank eval loader"
expect "$(complete_line 'rankine-bench st')" "step"
expect "$(complete_line 'rankine-bench step --nod')" "--nodes"
expect "$(complete_line 'rankine-bench loss --nod')" ""
expect "$(complete_line 'rankine-bench rank --loss ')" "rambo_map rambo_apc rambo_map_apc"
exit $failed
