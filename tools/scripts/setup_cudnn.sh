#!/usr/bin/env bash
# Fetches what the GPU layers need besides the CUDA toolkit, if it is missing, with pip into FOLDER, where
# the build looks for it (build/third_party): the headers of cuDNN's frontend (2 MB) and, if asked for, cuDNN
# itself. If nothing is missing, or there is no CUDA toolkit, it does nothing and needs no network. All of it
# is optional: if a download fails, it says so, and the programs are built without.
# Usage: tools/scripts/setup_cudnn.sh FOLDER [library]   library: also cuDNN, several hundred MB, if it is missing
set -euo pipefail
folder=${1:?a folder, as build/third_party}
mode=${2:-headers}
case $mode in
  headers | library) ;;
  *) echo "error: $mode: no such mode; use tools/scripts/setup_cudnn.sh FOLDER [library]" >&2; exit 2 ;;
esac

# Later versions make sums beside a convolution that cuDNN refuses (cmake/cudnn.cmake). All wheels of a
# version hold the same headers, so this one is fetched for any Python.
frontend=nvidia-cudnn-frontend==1.17.0
frontend_sha256=6ea44a8f2c0cfd20868b239ea13a2e0f32895dab868f6ff2bee01caf3778d273
cudnn=9.19.0.56

nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
[ -x "$nvcc" ] || exit 0
toolkit=$(dirname "$(dirname "$(readlink -f "$nvcc")")")

first_of() {
  local path
  for path in "$@"; do
    [ -e "$path" ] && return 0
  done
  return 1
}
machine=$(uname -m)
missing=()
first_of "$folder"/include/cudnn_frontend.h /usr/{local/,}include/cudnn_frontend.h \
  "$toolkit"/include/cudnn_frontend.h || missing+=("the frontend's headers")
first_of "$folder"/nvidia/cudnn/lib/libcudnn.so.9 "$toolkit"/lib{,64}/libcudnn.so.9 \
  /usr/{local/,}lib/libcudnn.so.9 /usr/lib/"$machine"-linux-gnu/libcudnn.so.9 || missing+=("cuDNN")
[ ${#missing[@]} -gt 0 ] || exit 0

# without WHAT: ends well all the same, since the build does without.
without() {
  echo "not fetched: $1; the programs are built without cuDNN" >&2
  exit 0
}
work=""
trap 'rm -rf "$work"' EXIT

# keep PART: puts it from $work/content into FOLDER, whole or not at all.
keep() {
  mkdir -p "$folder" &&
    rm -rf "${folder:?}/$1.part" &&
    cp -r "$work/content/$1" "$folder/$1.part" &&
    rm -rf "${folder:?}/$1" &&
    mv "$folder/$1.part" "$folder/$1"
}

# fetch PART REQUIREMENT FLAGS...: fetches one wheel and keeps its PART.
fetch() {
  local part=$1
  shift
  work=$(mktemp -d) || without "${1%% *}"
  if ! { "$(dirname "$0")/fetch_wheel.sh" "$work/content" "$@" && keep "$part"; }; then
    without "${1%% *}"
  fi
  rm -rf "$work"
}

for what in "${missing[@]}"; do
  if [ "$what" != cuDNN ]; then
    fetch include "$frontend --hash=sha256:$frontend_sha256" --implementation cp --python-version 3.11 \
      --platform manylinux_2_28_x86_64
  elif [ "$mode" = library ]; then
    version=$("$nvcc" --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
    fetch nvidia "nvidia-cudnn-cu$version==$cudnn"
  else
    echo "cuDNN 9 was not found; tools/scripts/setup_cudnn.sh $folder library fetches it"
  fi
done
