#include "engine/base/error.h"
#include "engine/group/mpi/process_group.h"

namespace rk {

bool has_mpi() { return false; }

std::unique_ptr<ProcessGroup> join_mpi() { fail<UsageError>("this build has no MPI"); }

}  // namespace rk
