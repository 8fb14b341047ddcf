// MPI behind ProcessGroup: process_group_with_mpi.cpp in builds that have it,
// process_group_without_mpi.cpp in the others.
#pragma once

#include "engine/group/process_group.h"

namespace rk {

bool has_mpi();
// Where there is none: an error.
std::unique_ptr<ProcessGroup> join_mpi();

}  // namespace rk
