// The command-line frame of all programs: common flags, help, error reporting and exit codes.
//
// main() is one call of run_program(). Every outcome is an exit code (engine/base/error.h; 130/143
// after a signal) and, for errors, one line `error: <message>` on standard error. Results go to
// standard output, progress and notes to standard error.
#pragma once

#include "engine/driver/device.h"
#include "engine/group/process_group.h"
#include "tools/cli/flags/flags.h"

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace rk {

struct CommonOptions {
  std::string program;       // argv[0]
  std::string command_line;  // with all arguments, quoted for a shell
  // auto, cpu, cuda or cuda:<index>; "cpu" or "cuda:<index>" once run_program() resolved it.
  std::string device = "auto";
  std::string asked_device = "auto";  // as it was given
  int threads = 0;                    // 0: as many as this process may use
  std::uint64_t seed = 0;
  std::string json;    // a file for the result; empty: none
  bool force = false;  // outputs may replace files that are not earlier results of their kind
  bool quiet = false;
  bool verbose = false;
  ProcessGroup* processes = nullptr;  // set for commands that share their work
  std::string less_memory;            // the command's flags that take less
};

// The program that reads a result through a pipe has ended: run_program() says nothing and returns
// the exit code of SIGPIPE.
class ReaderGone : public std::exception {
 public:
  const char* what() const noexcept override { return "nobody reads the result"; }
};

// The device that run_program() resolved.
Device device_of(const CommonOptions& common);

class Command {
 public:
  virtual ~Command() = default;
  // The variables' current values are the defaults, which --help shows.
  virtual void add_options(Flags& flags) = 0;
  virtual void run(const CommonOptions& common) = 0;
  // Whether `common.device` may be a GPU. If not, `auto` chooses the CPU and `cuda` is refused.
  virtual bool runs_on_cuda() const { return false; }
  // What --quiet and --verbose do, for --help.
  virtual const char* quiet_help() const { return "no progress, no notes"; }
  virtual const char* verbose_help() const { return "always say which device computes, and why"; }
  // A folder that run() makes if it is missing, in which --json may be, as flags name it; empty:
  // none.
  virtual std::string makes_folder() const { return ""; }
  // The flags whose smaller values take less memory; empty: none.
  virtual const char* less_memory() const { return ""; }
  // Whether several processes may share the work. If not, each process does all of it.
  virtual bool shares_work() const { return false; }
};

// One of a program's subcommands: `bench loss`.
struct Subcommand {
  std::string name;
  std::string description;
  std::unique_ptr<Command> command;
};

int run_program(int argc, const char* const* argv, const std::string& description,
                std::unique_ptr<Command> command);
int run_program(int argc, const char* const* argv, const std::string& description,
                std::vector<Subcommand> subcommands);

}  // namespace rk
