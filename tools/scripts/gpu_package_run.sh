#!/usr/bin/env bash
# The script `run` of the package that tools/scripts/pack_gpu.sh makes: checks every claim about GPUs on this machine's.
# Calls tools/scripts/gpu_proof.sh with the package's own programs and libraries.
#
# Usage: ./run list, ./run all, ./run NAME...       docs/profiling.md tells more
# Variables: those of tools/scripts/gpu_proof.sh; after every piece all results so far are in ARCHIVE (results.tar.gz)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) || exit 1
COMMIT=$(<"$root/COMMIT")
export BUILD=$root COMMIT RESULTS=${RESULTS:-$root/results} ARCHIVE=${ARCHIVE:-$root/results.tar.gz}
exec "$root/tools/scripts/gpu_proof.sh" "$@"
