#include "engine/error.h"
#include "engine/process_group_mpi.h"

namespace rk {

bool has_mpi() { return false; }

std::unique_ptr<ProcessGroup> join_mpi() { fail<UsageError>("this build has no MPI"); }

}  // namespace rk
