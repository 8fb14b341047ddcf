#!/usr/bin/env bash
# The script `run` of the package that tools/scripts/pack_gpu.sh makes: what is claimed of the GPU, shown on this one.
# It is tools/scripts/gpu_proof.sh, with what lies beside it.
#
# Usage: ./run list, ./run all, ./run NAME...       docs/profiling.md tells more
# Variables: those of tools/scripts/gpu_proof.sh; after every piece all results so far are in ARCHIVE (results.tar.gz)
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
COMMIT=$(<COMMIT)
export BUILD=. COMMIT RESULTS=${RESULTS:-results} ARCHIVE=${ARCHIVE:-results.tar.gz}
exec tools/scripts/gpu_proof.sh "$@"
