#!/usr/bin/env bash
# Makes a program's man page and bash completion from its --help.
# Usage: tools/scripts/manual.sh PROGRAM NAME FOLDER    FOLDER/man/NAME.1 and FOLDER/completions/NAME
# NAME is the program's name once it is installed: rankine-train.
set -euo pipefail
program=${1:?the program}
name=${2:?its name}
folder=${3:?where to}

# Runs the program under its installed name, so that --help uses that name, too.
help() {
  (exec -a "$name" "$program" "$@" --help)
}

help=$(help)
version=$("$program" --version)
subcommands=$(awk '/^Subcommands:/ {on = 1; next} /^$/ {on = 0} on {print $1}' <<<"$help")
all=$help
for subcommand in $subcommands; do all+=$'\n'$(help "$subcommand"); done

# Turns one --help into sections of a man page: a section for each group, an entry for each flag; keeps line breaks.
sections() {
  awk '
    function roff(text) {
      gsub(/\\/, "\\e", text)
      gsub(/-/, "\\-", text)
      return text ~ /^[.\47]/ ? "\\&" text : text
    }
    /^Usage: / { next }
    /^$/ { next }
    /^[^ ].*:$/ { sub(/:$/, ""); gsub(/"/, "\\(dq"); print ".fi\n.SH \"" roff($0) "\""; next }
    /^  [^ ]/ {
      at = match(substr($0, 3), /  +/)
      entry = at ? substr($0, 3, at - 1) : substr($0, 3)
      print ".TP 4\n.nf\n\\fB" roff(entry) "\\fR"
      if (at) print roff(substr($0, 2 + at + RLENGTH))
      next
    }
    /^ / { sub(/^ +/, ""); print roff($0); next }
    { print roff($0) "\n.br" }'
}

mkdir -p "$folder/man" "$folder/completions"
{
  echo ".TH ${name^^} 1 \"\" \"$version\""
  echo ".SH NAME"
  echo "${name//-/\\-} \\- $(sed '1s/\.$//;q' <<<"$help")"
  echo ".SH SYNOPSIS"
  echo ".B $(sed -n 's/^Usage: //p' <<<"$help" | sed 's/-/\\-/g')"
  echo ".SH DESCRIPTION"
  sections <<<"$help"
  for subcommand in $subcommands; do
    echo ".fi"
    echo ".SH \"${name//-/\\-} $subcommand\""
    help "$subcommand" | sections | sed 's/^\.SH/.SS/'
  done
  echo ".fi"
  echo ".SH SEE ALSO"
  echo "The README, the losses and the metrics in share/doc/rankine, recipes in share/rankine/recipes."
} >"$folder/man/$name.1"

flags=$(grep -oE '^  -[^ ]+' <<<"$all" | tr ', ' '\n\n' | grep '^-' | sort -u | tr '\n' ' ')
cat >"$folder/completions/$name" <<END
# bash completion for $name: flags; files for everything else
_${name//-/_}() {
  local words="${flags% }"
  if [ "\$COMP_CWORD" = 1 ]; then words+=" ${subcommands//$'\n'/ }"; fi
  if [[ \$2 == -* || \$COMP_CWORD == 1 ]]; then mapfile -t COMPREPLY < <(compgen -W "\$words" -- "\$2"); fi
}
complete -o bashdefault -o default -F _${name//-/_} $name
END
