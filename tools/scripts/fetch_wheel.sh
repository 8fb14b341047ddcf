#!/usr/bin/env bash
# Fetches one wheel with pip and unpacks it into FOLDER, without running or installing any of it.
# Usage: tools/scripts/fetch_wheel.sh FOLDER 'NAME==VERSION [--hash=sha256:...]' [FLAGS OF pip download...]
# Prints pip's last lines and ends with 1 if it cannot be fetched.
set -euo pipefail
folder=${1:?a folder, as build/third_party}
requirement=${2:?a requirement, as cmake==3.31.6}
shift 2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "fetching ${requirement%% *}"
echo "$requirement" >"$work/requirement"
mkdir "$work/wheels"
if ! python3 -m pip download -q --no-deps --only-binary=:all: --disable-pip-version-check \
  --retries 1 --timeout 20 "$@" -r "$work/requirement" -d "$work/wheels" >"$work/log" 2>&1; then
  tail -n 3 "$work/log" >&2
  exit 1
fi
mkdir -p "$folder"
python3 -m zipfile -e "$work"/wheels/*.whl "$folder"
