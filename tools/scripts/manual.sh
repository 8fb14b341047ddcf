#!/usr/bin/env bash
# Makes a program's man page and bash completion from its --help.
# Usage: tools/scripts/manual.sh PROGRAM NAME FOLDER PROBE    FOLDER/man/NAME.1 and FOLDER/completions/NAME
# NAME is the program's name once it is installed: rankine-train. PROBE is the program whose --help lists the losses.
set -euo pipefail
export LC_ALL=C.UTF-8  # upper case and the order of flags, whatever the user's language
program=${1:?the program}
name=${2:?its name}
folder=${3:?where to}
probe=${4:?the program probe}

# Runs the program under its installed name, so that --help uses that name, too.
help() {
  (exec -a "$name" "$program" "$@" --help)
}

help=$(help)
version=$("$program" --version)
subcommands=$(awk '/^Subcommands:/ {on = 1; next} /^$/ {on = 0} on {print $1}' <<<"$help")
# The first flags for which a program has another --help: "With --data it looks ...: rankine-probe --data SPEC --help".
modes=$(sed -n "s/^With .*: $name \(--.*\) --help\$/\1/p" <<<"$help")
losses=$("$probe" --help | awk '/^Losses/ {on = 1; next} /^$/ {on = 0} on && /^  [a-z]/ {print $1}')

# Turns one --help into sections of a man page: a section for each group, an entry for each flag; keeps line breaks.
# What comes before "Usage:" is text and examples.
sections() {
  awk '
    function roff(text) {
      gsub(/\\/, "\\e", text)
      gsub(/-/, "\\-", text)
      return text ~ /^[.\47]/ ? "\\&" text : text
    }
    /^Usage: / { described = 1; next }
    /^$/ { next }
    /^[^ ].*:$/ && described { sub(/:$/, ""); gsub(/"/, "\\(dq"); print ".fi\n.SH \"" roff($0) "\""; next }
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

exit_status() {
  echo ".TP 4"
  echo "0"
  echo "done"
  echo ".TP 4"
  echo "1"
  echo "an error of the program itself; please report it"
  echo ".TP 4"
  echo "2"
  echo "wrong usage"
  echo ".TP 4"
  echo "3"
  echo "bad input, or an output that cannot be written, which the message names"
  if [ "$name" = rankine-train ]; then
    echo ".TP 4"
    echo "4"
    echo "training diverged: a loss, gradient or parameter was not finite"
  fi
  echo ".TP 4"
  echo "5"
  echo "the device failed, or memory ran out"
  echo ".TP 4"
  if [ "$name" = rankine-train ]; then
    echo "130, 138, 143"
    echo "stopped by Ctrl\-C, SIGUSR1 or SIGTERM, after saving"
  else
    echo "130, 143"
    echo "stopped by Ctrl\-C or SIGTERM"
  fi
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
  while read -r inner; do
    [ -n "$inner" ] || continue
    echo ".fi"
    echo ".SH \"${name//-/\\-} ${inner//-/\\-}\""
    # shellcheck disable=SC2086
    help $inner | sections | sed 's/^\.SH/.SS/'
  done <<<"$subcommands"$'\n'"$modes"
  echo ".fi"
  echo ".SH EXIT STATUS"
  exit_status
  echo ".SH SEE ALSO"
  for other in train eval convert probe bench; do
    [ "$name" = "rankine-$other" ] || echo ".BR rankine\\-$other (1),"
  done
  echo "the README, the losses and the metrics in share/doc/rankine, recipes in share/rankine/recipes."
} >"$folder/man/$name.1"

flags_of() {  # of a --help
  grep -oE '^  -[^ ]+' | tr ',' '\n' | tr -d ' ' | grep '^-' | sort -u | tr '\n' ' ' | sed 's/ $//'
}

# Of a --help: for each flag whose values are a set of words, or numbers, what to offer behind it. OF: the subcommand.
values_of() {  # OF
  awk -v of="$1" -v losses="${losses//$'\n'/ }" '
    /^  -[^ ]+ [^ ]/ {
      words = ""
      if (match($2, /\{[^}]*\}/)) {
        count = split(substr($2, RSTART + 1, RLENGTH - 2), all, ",")
        for (i = 1; i <= count; i++) if (all[i] !~ /[A-Z]/) words = words (words == "" ? "" : " ") all[i]
      } else if ($1 == "--loss") {
        words = losses
      } else if ($2 ~ /^(INT|UINT|FLOAT)/) {
        words = " "
      } else {
        next
      }
      count = split($1, names, ",")
      pattern = of ":" names[1]
      for (i = 2; i <= count; i++) pattern = pattern " | " of ":" names[i]
      print "    " pattern ") words=\"" words "\" ;;"
    }'
}

{
  echo "# bash completion for $name: flags, and their values where these are a set; files for everything else"
  echo "_${name//-/_}() {"
  echo "  local words=\"\" before=\$3"
  echo "  if [ \"\$before\" = = ]; then before=\${COMP_WORDS[COMP_CWORD - 2]}; fi"
  echo "  case \${COMP_WORDS[1]}:\$before in"
  if [ -n "$subcommands" ]; then
    for subcommand in $subcommands; do help "$subcommand" | values_of "$subcommand"; done
    echo "    *) if [[ \$COMP_CWORD == 1 && \$2 != -* ]]; then words=\"${subcommands//$'\n'/ }\"; fi ;;"
  else
    while read -r mode; do
      # shellcheck disable=SC2086
      help $mode | values_of "*"
    done <<<$'\n'"$modes" | awk '!seen[$1]++'
  fi
  echo "  esac"
  echo "  if [ -n \"\$words\" ]; then"
  echo "    compopt +o bashdefault +o default 2>/dev/null || true  # no files"
  if [ -n "$subcommands" ]; then
    echo "  elif [[ \$2 == -* ]]; then"
    echo "    case \${COMP_WORDS[1]} in"
    for subcommand in $subcommands; do
      echo "      $subcommand) words=\"$(help "$subcommand" | flags_of)\" ;;"
    done
    echo "      *) words=\"$(flags_of <<<"$help")\" ;;"
    echo "    esac"
  else
    # Where a file comes first, flags are offered only to who begins one.
    first=" || \$COMP_CWORD == 1"
    if grep -q '^Positionals:' <<<"$help"; then first=""; fi
    flags=$(while read -r mode; do
      # shellcheck disable=SC2086
      help $mode
    done <<<$'\n'"$modes" | flags_of)
    echo "  elif [[ \$2 == -*$first ]]; then"
    echo "    words=\"$flags\""
  fi
  echo "  fi"
  echo "  mapfile -t COMPREPLY < <(compgen -W \"\$words\" -- \"\$2\")"
  echo "}"
  echo "complete -o bashdefault -o default -F _${name//-/_} $name"
} >"$folder/completions/$name"
