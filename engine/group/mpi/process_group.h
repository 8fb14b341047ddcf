// MPI behind ProcessGroup; ../absent/mpi.cpp in builds without it.
#pragma once

#include "engine/group/process_group.h"

namespace rk {

bool has_mpi();
// Joins MPI's processes; throws UsageError in a build without MPI.
std::unique_ptr<ProcessGroup> join_mpi();

}  // namespace rk
