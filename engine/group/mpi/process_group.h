// MPI behind ProcessGroup; ../absent/mpi.cpp in builds without it.
#pragma once

#include "engine/group/process_group.h"

namespace rk {

bool has_mpi();
// Where there is none: an error.
std::unique_ptr<ProcessGroup> join_mpi();

}  // namespace rk
