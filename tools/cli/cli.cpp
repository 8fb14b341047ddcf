#include "tools/cli/cli.h"

#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/base/printable.h"
#include "engine/group/process_device.h"
#include "engine/system/parser_process.h"
#include "engine/system/signals.h"
#include "tools/cli/flags/command_line.h"
#include "tools/cli/flags/program_names.h"
#include "tools/cli/flags/shell_word.h"
#include "tools/cli/flags/threads.h"
#include "tools/cli/json_file.h"
#include "tools/cli/messages.h"
#include "tools/cli/output_files.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>

namespace rk {
namespace {

constexpr int kInternalError = 1;

void add_common(Flags flags, const Command& command, CommonOptions& common) {
  const std::string group = "Common";
  const bool cuda = command.runs_on_cuda();
  flags
      .add("--device", common.device,
           cuda ? "what computes; auto: a GPU if one works, else the CPU"
                : "this command computes on the CPU alone")
      .check(cuda ? shown_values({"auto", "cpu", "cuda", "cuda:INDEX"})
                  : shown_values({"auto", "cpu"}))
      .group(group);
  flags
      .add("--threads", common.threads,
           "CPU threads; 0: one for each processor this process may use; at most eight for each")
      .check({in_range(0, 4096).problem})
      .group(group);
  // Unsigned numbers wrap around silently in CLI11 2.1; -1 must not become the largest seed.
  flags.add("--seed", common.seed, "seed of all random numbers, where the command draws any")
      .check(whole_number(0))
      .group(group);
  flags
      .add("--json", common.json,
           "also write the result to this file; -: to standard output, and the text elsewhere")
      .check(file_name())
      .type_name("FILE")
      .group(group);
  flags.add_switch("--force", common.force, "let results replace files that are no earlier results")
      .group(group);
  const Flag quiet = flags.add_switch("-q,--quiet", common.quiet, command.quiet_help());
  flags.add_switch("-v,--verbose", common.verbose, command.verbose_help())
      .excludes(quiet)
      .group(group);
  quiet.group(group);
}

void resolve_device(CommonOptions& common, const Command& command) {
  using Kind = DeviceRequest::Kind;
  const DeviceRequest request = parse_device(common.device);
  common.asked_device = common.device;
  if (request.kind == Kind::kCuda && !command.runs_on_cuda()) {
    fail<UsageError>("--device {}: this command computes on the CPU alone; use --device cpu",
                     common.device);
  }
  DeviceChoice choice;
  if (request.kind == Kind::kAuto && has_gpu_code() && !command.runs_on_cuda()) {
    choice.why = "this command runs on the CPU alone";
  } else if (request.kind != Kind::kCpu) {
    choice = common.processes != nullptr ? choose_device(request, probe_gpus(), *common.processes)
                                         : choose_device(request, probe_gpus());
  }
  common.device = choice.device.name();
  if (request.kind != Kind::kAuto || common.quiet) return;
  // If the program and the command could use a GPU, say what was chosen and why.
  if (common.verbose || (has_gpu_code() && command.runs_on_cuda())) {
    tell("device: {} ({})", common.device, choice.why);
  }
}

void begin(CommonOptions& common, const Command& command) {
  common.less_memory = command.less_memory();
  common.quiet ? send_notes(nullptr)
               : send_notes([names = ProgramNames(common.program)](const std::string& line) {
                   tell("note: {}", names.in_advice(line));
                 });
  set_stop_messages(
      common.quiet
          ? StopMessages{}
          : StopMessages{"stopping where nothing is lost; Ctrl-C again within 5 seconds: at once",
                         ""});
  if (common.json == kStandardOutput) give_standard_output_to_json();
  check_outputs({{.flag = "--json",
                  .path = common.json,
                  .kind = FileKind::kJson,
                  .made = command.makes_folder()}},
                {}, common.force);
  check_threads(common.threads, fmt::format("--threads {}", common.threads));
  resolve_device(common, command);
}

}  // namespace

Device device_of(const CommonOptions& common) { return parse_device(common.device).device(); }

namespace {

int report(std::string_view message, int code, std::string_view prefix = "error: ") {
  tell("{}{}", prefix, message);
  return code;
}

// Whether the program that reads standard output through a pipe has ended.
bool reader_is_gone() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

int report_out_of_memory(std::string_view message, const CommonOptions& common) {
  const std::string less =
      common.less_memory.empty() ? "" : ", or take less at a time: " + common.less_memory;
  return report(fmt::format("{}{}", message, less), static_cast<int>(ExitCode::kDevice));
}

// Runs `work` and turns whatever it throws into a line and an exit code.
int guarded(const CommonOptions& common, const std::function<void()>& work) {
  try {
    work();
    // A result that did not reach its reader is not a result: `eval > /full/disk` must not be 0.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      if (reader_is_gone()) throw ReaderGone();
      fail<InputError>("standard output: cannot be written; see its disk, or who reads it");
    }
    return static_cast<int>(ExitCode::kDone);
  } catch (const ReportedByAnother&) {
    return static_cast<int>(ExitCode::kDone);  // ProcessGroup::leave() knows better
  } catch (const ReaderGone&) {
    return 128 + SIGPIPE;  // `... | head`: as other programs end
  } catch (const Interrupted& error) {
    return report(error.what(), interrupted_exit_code(), "");  // requested, so not an error
  } catch (const OutOfMemory& error) {
    return report_out_of_memory(error.what(), common);
  } catch (const Error& error) {
    return report(ProgramNames(common.program).in_advice(error.what()),
                  static_cast<int>(error.exit_code()));
  } catch (const std::bad_alloc&) {
    return report_out_of_memory(
        "out of memory; end what else runs here or raise the limit (ulimit -v)", common);
  } catch (const std::filesystem::filesystem_error& error) {
    return report(fmt::format("{}: {}; see that it exists and may be used", error.path1().string(),
                              error.code().message()),
                  static_cast<int>(ExitCode::kBadInput));
  } catch (const std::system_error& error) {
    return report(fmt::format("{}; see the disk and its permissions", error.what()),
                  static_cast<int>(ExitCode::kBadInput));
  } catch (const std::invalid_argument& error) {
    return report(error.what(), static_cast<int>(ExitCode::kUsage));
  } catch (const std::exception& error) {
    return report(fmt::format("internal: {}; please report it", error.what()), kInternalError);
  }
}

// Replaces closed standard streams by descriptors that refuse writing: files opened later would
// otherwise get their numbers, and messages would go into a checkpoint.
void hold_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) == -1 && ::open("/dev/null", O_RDONLY) < 0) return;
  }
}

int run_as_program(const CommonOptions& common, const std::function<void()>& work) {
  return guarded(common, [&] {
    hold_standard_streams();
    install_signal_handlers();
    set_parser_interruption(stop_if_interrupted);
    work();
  });
}

void set_command(int argc, const char* const* argv, CommonOptions& common) {
  common.program = argv[0];
  for (int i = 0; i < argc; ++i) {
    common.command_line += (i > 0 ? " " : "") + shell_word(argv[i]);
  }
}

// Errors in flags, files or memory, and signals, mostly concern all processes. The first process
// reports the error and ends the others, which wait for this before they would report it too, one
// after another, since one that reports it ends those behind it. Processes that left together have
// settled who reports it.
void let_the_first_say_it(const ProcessGroup* group) {
  if (group == nullptr || group->first() || group->ended_together()) return;
  constexpr int kMostInTurn = 20;
  std::this_thread::sleep_for(std::chrono::seconds(10) +
                              std::chrono::milliseconds(500) *
                                  std::min(group->rank() - 1, kMostInTurn));
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  tell("process {} on {} ends all {}:", group->rank(), one_line(host.data()), group->size());
}

// Several processes appear as one to the user: only the first one prints.
void share(ProcessGroup& group, CommonOptions& common) {
  common.processes = &group;
  if (group.first()) return;
  common.quiet = true;
  common.json.clear();
}

}  // namespace

int run_program(int argc, const char* const* argv, const std::string& description,
                std::unique_ptr<Command> command) {
  CommonOptions common;
  set_command(argc, argv, common);
  CommandLine line(argv[0], description);
  Flags flags = line.flags();
  command->add_options(flags);
  add_common(flags, *command, common);
  std::unique_ptr<ProcessGroup> group;
  int code = run_as_program(common, [&] {
    // Before parsing, so that one of them alone reports what is wrong with the flags.
    if (command->shares_work()) group = join_process_group();
    try {
      if (!line.parse(argc, argv, group == nullptr || group->first())) return;
      if (group) share(*group, common);
      begin(common, *command);
      command->run(common);
    } catch (...) {
      let_the_first_say_it(group.get());
      throw;
    }
  });
  if (group) code = group->leave(code);
  return code;
}

int run_program(int argc, const char* const* argv, const std::string& description,
                std::vector<Subcommand> subcommands) {
  CommonOptions common;
  set_command(argc, argv, common);
  CommandLine line(argv[0], description);
  for (Subcommand& sub : subcommands) {
    Flags flags = line.add_subcommand(sub.name, sub.description);
    sub.command->add_options(flags);
    add_common(flags, *sub.command, common);
  }
  return run_as_program(common, [&] {
    if (!line.parse(argc, argv)) return;
    for (Subcommand& sub : subcommands) {
      if (!line.chose(sub.name)) continue;
      begin(common, *sub.command);
      sub.command->run(common);
    }
  });
}

}  // namespace rk
