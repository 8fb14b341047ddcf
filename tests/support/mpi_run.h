// The words in front of a program's own that start it as several processes through mpiexec: on
// this machine alone, also for root, and also with more processes than cores. Where one process
// fails, mpiexec kills the others at once: its grace of a second is most of what such a test takes.
// Its own files lie in a folder of this test program: those of every mpiexec on the machine lie in
// one otherwise, which the first to end removes while another begins.
#pragma once

#include "tests/support/temporary_folder.h"

#include <string>
#include <vector>

namespace rk {

inline bool has_mpiexec() { return !std::string(RK_MPIEXEC).empty(); }

inline std::vector<std::string> mpiexec(int processes) {
  static const TemporaryFolder sessions;
  return {"/usr/bin/env",
          "OMPI_ALLOW_RUN_AS_ROOT=1",
          "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
          "OMPI_MCA_rmaps_base_oversubscribe=1",
          "OMPI_MCA_oob_tcp_if_include=lo",
          "OMPI_MCA_btl=self,vader",
          "OMPI_MCA_odls_base_sigkill_timeout=0",
          "OMPI_MCA_orte_tmpdir_base=" + sessions.path().string(),
          RK_MPIEXEC,
          "-n",
          std::to_string(processes)};
}

}  // namespace rk
