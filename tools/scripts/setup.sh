#!/usr/bin/env bash
# Checks what the build needs, says what is missing and installs it (Debian and Ubuntu, as root or with
# sudo). If nothing is missing, it does nothing and needs no network.
# Usage: tools/scripts/setup.sh [ci|deb]   ci: also the tools of `make lint` and of the sanitizer builds, and MPI
# (clang-tidy itself comes by pip, see tools/scripts/lint.sh); deb: also those of `make deb`.
set -euo pipefail

mode=${1:-build}
case $mode in
  build | ci | deb) ;;
  *) echo "error: $mode: no such mode; use tools/scripts/setup.sh [ci|deb]" >&2; exit 2 ;;
esac

# package | what proves that it is installed: a command, a header that the compiler finds, a pkg-config
# module, or a flag that clang++ can link with.
# OpenCL: Debian's oneDNN needs it to be linked, though Rankine does not use it.
needed='
g++|command g++
cmake|command cmake
ninja-build|command ninja
pkg-config|command pkg-config
libdnnl-dev|header oneapi/dnnl/dnnl.hpp
opencl-headers|header CL/cl.h
ocl-icd-opencl-dev|pkg OpenCL
libfmt-dev|header fmt/format.h
libcli11-dev|header CLI/CLI.hpp
nlohmann-json3-dev|header nlohmann/json.hpp
libtomlplusplus-dev|header toml++/toml.h
libhdf5-dev|pkg hdf5
zlib1g-dev|pkg zlib
libjpeg-dev|header stdio.h,jpeglib.h
libpng-dev|header png.h
libssl-dev|header openssl/sha.h
libarchive-dev|pkg libarchive
libprotobuf-dev|pkg protobuf
libonnx-dev|header onnx/onnx-ml.pb.h
libgtest-dev|header gtest/gtest.h
'
if [ "$mode" = ci ]; then
  needed+='
clang|command clang++
libclang-rt-dev|clang -fsanitize=address
libomp-dev|clang -fopenmp
clang-format|command clang-format
python3-pip|command pip3
libopenmpi-dev|command mpicxx
openmpi-bin|command mpiexec
'
fi
if [ "$mode" = deb ]; then
  needed+='
dpkg-dev|command dpkg-shlibdeps
file|command file
'
fi

# As CMake looks: by the system's pkg-config before others in PATH, which know other packages (conda's knows conda's),
# and in the prefixes that CMAKE_PREFIX_PATH names.
pkg_config=${PKG_CONFIG:-$(PATH=/usr/local/bin:/usr/bin:/bin command -v pkg-config || command -v pkg-config || true)}
includes=()
IFS=: read -ra prefixes <<<"${CMAKE_PREFIX_PATH:-}"
for prefix in "${prefixes[@]}"; do
  includes+=(-isystem "$prefix/include")
  export PKG_CONFIG_PATH="${PKG_CONFIG_PATH:-}:$prefix/lib/pkgconfig:$prefix/lib64/pkgconfig:$prefix/share/pkgconfig"
done

present() {
  local kind=$1 name=$2
  case $kind in
    command) command -v "$name" >/dev/null ;;
    clang)
      command -v clang++ >/dev/null || return 1
      echo 'int main() { return 0; }' | clang++ "$name" -x c++ -o /dev/null - >/dev/null 2>&1
      ;;
    pkg)
      # shellcheck disable=SC2086  # the variable PKG_CONFIG may hold flags
      [ -n "$pkg_config" ] && $pkg_config --exists "$name"
      ;;
    header)
      command -v g++ >/dev/null || return 1
      tr ',' '\n' <<<"$name" | sed 's/.*/#include <&>/' | g++ -std=c++20 "${includes[@]}" -E -x c++ - >/dev/null 2>&1
      ;;
  esac
}

missing=()  # packages
unseen=()   # those that are installed, but pkg-config does not find them
while IFS='|' read -r package check; do
  [ -n "$package" ] || continue
  # shellcheck disable=SC2086  # kind and name are two words
  present $check && continue
  missing+=("$package")
  if [ "${check%% *}" = pkg ] && [ -n "$pkg_config" ] &&
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ]; then
    unseen+=("$package")
    unseen_module=${check#* }
  fi
done <<<"$needed"

# The presets are read before CMakeLists.txt can ask for a version.
require_cmake() {
  local oldest=3.25 version
  version=$(cmake --version | sed -n '1s/[^0-9]*//p')
  if ! printf '%s\n' "$oldest" "$version" | sort -VC; then
    echo "error: cmake $version: older than $oldest, which Debian 12 and Ubuntu 24.04 have; install a newer one" >&2
    exit 1
  fi
}

if [ ${#missing[@]} -eq 0 ]; then
  require_cmake
  exit 0
fi
# Others that are missing are installed first: a package may be unseen for want of one of them.
if [ ${#unseen[@]} -eq ${#missing[@]} ]; then
  advice="\`$pkg_config --print-errors --exists $unseen_module\` says why"
  for variable in PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR PKG_CONFIG; do
    [ -z "${!variable:-}" ] || advice="unset $variable, which is ${!variable}"
  done
  echo "error: $pkg_config: does not find what is installed as ${unseen[*]}; $advice" >&2
  exit 1
fi
echo "missing: ${missing[*]}"

install=(apt-get install -y --no-install-recommends "${missing[@]}")
if ! command -v apt-get >/dev/null; then
  echo "error: no apt-get here; install what these Debian packages hold: ${missing[*]}" >&2
  exit 1
fi
sudo=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "error: neither root nor sudo; ask for: ${install[*]}" >&2
    exit 1
  fi
  sudo=(sudo)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
run() {
  echo "+ ${sudo[*]:+sudo }$*"
  if ! "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive "$@" >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "error: $* failed; see the lines above" >&2
    exit 1
  fi
}
run apt-get update -q
run "${install[@]}"
echo "installed: ${missing[*]}"
require_cmake
