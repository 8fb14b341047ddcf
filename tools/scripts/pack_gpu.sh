#!/usr/bin/env bash
# Packs everything that checks the claims about GPUs into one archive, for a GPU machine without network, compiler and
# packages: the programs, the GPU tests, the golden files, the scripts, and every library that a bare Debian 12 or
# Ubuntu 24.04 lacks. The archive can be unpacked anywhere; its script `run` runs the pieces of
# tools/scripts/gpu_proof.sh by name. CUDA's libraries are not included: that machine must have them
# (engine/driver/libraries.h).
# Usage: tools/scripts/pack_gpu.sh [ARCHIVE]     build-gpu/rankine-gpu.tar.xz
# Variables: BUILD=build-gpu             a build folder of its own, because its programs are linked differently
#            ARCHITECTURES=90-real       the GPUs to build for, as RK_CUDA_ARCHITECTURES takes them
#            LEVEL=9                     xz's level; a lower one packs faster
#            JOBS=cores
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${BUILD:-build-gpu}
archive=${1:-$build/rankine-gpu.tar.xz}
jobs=${JOBS:-$(nproc)}
programs="train probe bench"  # the ones that gpu_proof.sh's pieces call
tests="cuda_test golden cudnn_test"
commit=$(git rev-parse HEAD) || { echo "error: no commit to name; pack from a clone" >&2; exit 1; }
[ -z "$(git status --porcelain --untracked-files=no)" ] || commit+=", with changes"

# DT_RPATH instead of DT_RUNPATH, because libraries also find each other by it. No MPI: Open MPI would need its
# plug-ins, and the machine's own mpirun is of another version.
mkdir -p "$build"
tools/scripts/setup_cudnn.sh "$build/third_party"
if ! cmake --preset release -B "$build" -DRK_NATIVE=OFF -DRK_CUDA=ON \
  -DRK_CUDA_ARCHITECTURES="${ARCHITECTURES:-90-real}" -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON \
  -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON \
  "-DCMAKE_INSTALL_RPATH=\$ORIGIN/../lib" >"$build/configure.log" 2>&1; then
  cat "$build/configure.log" >&2
  exit 1
fi
# shellcheck disable=SC2086
cmake --build "$build" --target $programs $tests -j "$jobs"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/rankine-gpu
mkdir -p "$root/bin" "$root/lib" "$root/tools/scripts" "$root/tests/golden"
for name in $programs $tests; do strip -o "$root/bin/$name" "$build/bin/$name"; done

# glibc's and g++'s runtime libraries must be the machine's own: its driver and CUDA's libraries may need newer ones.
theirs='lib(c|m|dl|pthread|rt|resolv|stdc\+\+|gcc_s)\.so\.[0-9]+'
for name in $programs $tests; do ldd "$build/bin/$name"; done | sort -u >"$work/needed"
if grep 'not found' "$work/needed" >&2; then
  echo "error: libraries are missing here; tools/scripts/setup.sh installs them" >&2
  exit 1
fi
sed -nE 's/^\t(\S+) => (\/\S+) .*/\1 \2/p' "$work/needed" | while read -r soname file; do
  [[ $soname =~ ^$theirs$ ]] || strip --strip-unneeded -o "$root/lib/$soname" "$(readlink -f "$file")"
done
for name in $programs $tests; do
  "$root/bin/$name" --version >"$work/said" 2>&1 && grep -qx 'Rankine [0-9.]*' "$work/said" && continue
  echo "error: the packed $name does not start with the packed libraries:" >&2
  cat "$work/said" >&2
  exit 1
done

for name in gpu_proof.sh profile.sh profile_table.py bench_pytorch.py bench_peers.py bench_peers_worker.py \
  bench_retrieval_peers.py; do
  cp "tools/scripts/$name" "$root/tools/scripts/"
done
cp -r tests/golden/losses tests/golden/networks tests/golden/metrics "$root/tests/golden/"
cp --parents tests/golden/images/files/q75_420.jpg "$root/"  # the loader's photo
mkdir "$root/docs"
cp docs/profiling.md "$root/docs/"
cp -r recipes "$root/"
echo "$commit" >"$root/COMMIT"
cp tools/scripts/gpu_package_run.sh "$root/run"

# One dictionary over the whole archive, because the programs share most of their code.
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner -cf - rankine-gpu |
  xz -T1 --x86 "--lzma2=preset=${LEVEL:-9},dict=256MiB" >"$archive.part"
mv "$archive.part" "$archive"
bytes=$(stat -c %s "$archive")
echo "$archive: $((bytes / 1000000)) MB, commit $commit"
grown="see what grew: tar -tvf $archive"
if [ "$bytes" -gt 40000000 ]; then
  echo "error: $archive has more than 40 MB; $grown" >&2
  exit 1
elif [ "$bytes" -gt 36000000 ]; then
  echo "warning: $archive has more than 36 MB; to stay well below the limit of 40 MB, $grown" >&2
fi
