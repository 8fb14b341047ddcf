// The words in front of a program's own that start it as several processes through mpiexec: on
// this machine alone, also for root, and also with more processes than cores. Where one process
// fails, mpiexec kills the others at once: its grace of a second is most of what such a test takes.
// Its own files lie in a folder of this test program: those of every mpiexec on the machine lie in
// one otherwise, which the first to end removes while another begins. (OMPI: Open MPI 4 reads it;
// PRTE: Open MPI 5.)
#pragma once

#include "tests/support/shell_line.h"
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
          "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe",
          "OMPI_MCA_oob_tcp_if_include=lo",
          "OMPI_MCA_btl=self,vader",
          "OMPI_MCA_odls_base_sigkill_timeout=0",
          "PRTE_MCA_odls_base_sigkill_timeout=0",
          "OMPI_MCA_orte_tmpdir_base=" + sessions.path().string(),
          "PRTE_MCA_prte_tmpdir_base=" + sessions.path().string(),
          RK_MPIEXEC,
          "-n",
          std::to_string(processes)};
}

// Two processes that are started in different ways. (mpiexec can start several programs itself, but
// Debian 13's crashes at that.)
inline std::vector<std::string> together(const std::vector<std::string>& first,
                                         const std::vector<std::string>& second) {
  std::vector<std::string> words = mpiexec(2);
  words.insert(words.end(), {"/bin/sh", "-c",
                             "if [ \"$OMPI_COMM_WORLD_RANK\" = 0 ]; then " + shell_line(first) +
                                 "; else " + shell_line(second) + "; fi"});
  return words;
}

}  // namespace rk
