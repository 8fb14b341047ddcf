#include "tools/cli/cli.h"

#include "engine/base/error.h"
#include "engine/base/nearest.h"
#include "engine/base/note.h"
#include "engine/group/process_device.h"
#include "engine/system/parser_process.h"
#include "engine/system/signals.h"
#include "tools/cli/json_file.h"
#include "tools/cli/messages.h"
#include "tools/cli/other_names.h"
#include "tools/cli/output_files.h"
#include "tools/cli/program_names.h"
#include "tools/cli/threads.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <new>
#include <sstream>
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

// The application that parsed last: the subcommand, if there is one.
CLI::App& innermost(CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : *chosen.front();
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  return flags;
}

// What a word without a flag may have been meant for.
std::string what_for(const std::string& word, const CLI::App& app) {
  std::error_code ignored;
  const bool takes_data = app.get_option_no_throw("--data") != nullptr;
  if (!takes_data || !std::filesystem::is_directory(word, ignored)) return "see --help";
  return fmt::format("as data it is --data folder:{}; see --help", shell_word(word));
}

std::string usage_message(CLI::App& app, const CLI::ParseError& error) {
  CLI::App& inner = innermost(app);
  // Report an unknown argument first: it is a likelier mistake than the required argument that is
  // missing because of it.
  const std::vector<std::string> unknown = app.remaining(true);
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) names.push_back(sub->get_name());
  if (!unknown.empty()) {
    const std::string word = unknown.front().substr(0, unknown.front().find('='));
    if (word.starts_with('-')) {
      const std::vector<std::string> flags = flags_of(inner);
      const std::string advice = name_advice(word, flags);
      return fmt::format("{}: no such flag; {}", word,
                         advice.starts_with("known") ? "see --help" : advice);
    }
    if (&inner == &app && !names.empty()) {
      return fmt::format("{}: no such subcommand; {}", word, suggestion(word, names));
    }
    return fmt::format("{}: not expected here; {}", word, what_for(word, inner));
  }
  if (&inner == &app && !names.empty()) {
    return fmt::format("no subcommand; give one of {}; see --help", fmt::join(names, ", "));
  }
  return fmt::format("{}; see --help", error.what());
}

int report(std::string_view message, int code, std::string_view prefix = "error: ") {
  tell("{}{}", prefix, message);
  return code;
}

// Whether the program that reads standard output through a pipe has ended.
bool reader_is_gone() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

// Runs `work` and turns whatever it throws into a line and an exit code.
int guarded(const ProgramNames& names, const std::function<void()>& work) {
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
  } catch (const Error& error) {
    return report(names.in_advice(error.what()), static_cast<int>(error.exit_code()));
  } catch (const std::bad_alloc&) {
    return report(
        "out of memory; end what else runs here, raise the limit (ulimit -v), or take less at a "
        "time (train: --chunk, --batch; eval: --batch)",
        static_cast<int>(ExitCode::kDevice));
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

// The library takes whatever follows a flag for its value, even another flag, and then complains of
// the word behind that.
void require_values(int argc, const char* const* argv, CLI::App& app) {
  const CLI::App* inner = &app;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) {
    if (argc > 1 && sub->get_name() == argv[1]) inner = sub;
  }
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--") return;  // what follows are no flags
    const CLI::Option* flag = word.starts_with('-') ? inner->get_option_no_throw(word) : nullptr;
    if (flag == nullptr || flag->get_expected_min() == 0) continue;
    const std::string next = i + 1 < argc ? argv[i + 1] : "";
    const bool follows = next.starts_with("--") && inner->get_option_no_throw(next) != nullptr;
    if (i + 1 < argc && !follows) {
      ++i;  // its value
      continue;
    }
    const std::string type = flag->get_type_name();
    const std::size_t words = type.find('{');
    fail<UsageError>("{}: its value is missing{}{}; see --help", word,
                     words == std::string::npos ? "" : ", one of " + type.substr(words),
                     follows ? fmt::format(", {} follows", next) : "");
  }
}

int run_as_program(const std::string& program, const std::function<void()>& work) {
  return guarded(ProgramNames(program), [&] {
    hold_standard_streams();
    install_signal_handlers();
    set_parser_interruption(stop_if_interrupted);
    work();
  });
}

// Returns whether there is something to run; if not, --help or --version was answered by `answers`.
bool parse(int argc, const char* const* argv, CLI::App& app, bool answers = true) {
  require_values(argc, argv, app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    if (answers) app.exit(success);
    return false;
  } catch (const CLI::ParseError& error) {
    throw UsageError(usage_message(app, error));
  }
  return true;
}

// Wraps descriptions at words; CLI11 leaves this to the terminal, which breaks inside words.
class WrappedHelp final : public CLI::Formatter {
 public:
  explicit WrappedHelp(const char* program) : names_(program) { column_width(kNames); }
  std::string make_description(const CLI::App* app) const override {
    return names_.in_help(CLI::Formatter::make_description(app));
  }
  std::string make_footer(const CLI::App* app) const override {
    return names_.in_help(CLI::Formatter::make_footer(app));
  }
  // Only two blanks tell a description from what stands before it.
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    const std::string name = make_option_name(option, is_positional) + make_option_opts(option);
    std::ostringstream out;
    const bool too_near = kNameIndent + name.size() + 1 == kNames;
    if (too_near) out << std::string(kNameIndent, ' ') << name << '\n';
    CLI::detail::format_help(out, too_near ? "" : name, make_option_desc(option), kNames);
    return out.str();
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    std::string out;
    std::size_t line = 0;
    std::istringstream words(names_.in_help(CLI::Formatter::make_option_desc(option)));
    for (std::string paragraph; std::getline(words, paragraph); line = 0) {
      if (!out.empty()) out += '\n';
      std::istringstream in(paragraph);
      for (std::string word; in >> word; line += word.size() + 1) {
        if (line > 0 && line + word.size() > kLine - kNames) {
          out += '\n';
          line = 0;
        }
        if (line > 0) out += ' ';
        out += word;
      }
    }
    return out;
  }

 private:
  static constexpr std::size_t kNameIndent = 2, kNames = 32, kLine = 100;
  ProgramNames names_;
};

void set_up(CLI::App& app, const char* path) {
  app.formatter(std::make_shared<WrappedHelp>(path));
  app.name(ProgramNames(path).own());
  // If a flag is given twice the last one wins, so that one can override flags of a shell alias.
  app.option_defaults()->always_capture_default()->multi_option_policy(
      CLI::MultiOptionPolicy::TakeLast);
  app.set_version_flag("--version", "Rankine " RK_VERSION);
}

void set_command(int argc, const char* const* argv, CommonOptions& common) {
  common.program = argv[0];
  for (int i = 0; i < argc; ++i) {
    common.command_line += (i > 0 ? " " : "") + shell_word(argv[i]);
  }
}

// Errors in flags, files or memory, and signals, mostly concern all processes. The first process
// reports the error and ends the others, which wait for this before they would report it too.
// Processes that left together have settled who reports it.
void let_the_first_say_it(const ProcessGroup* group) {
  if (group == nullptr || group->first() || group->ended_together()) return;
  std::this_thread::sleep_for(std::chrono::seconds(10));
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
  CLI::App app(description);
  set_up(app, argv[0]);
  Flags flags(app);
  command->add_options(flags);
  add_common(flags, *command, common);
  std::unique_ptr<ProcessGroup> group;
  int code = run_as_program(common.program, [&] {
    // Before parsing, so that one of them alone reports what is wrong with the flags.
    if (command->shares_work()) group = join_process_group();
    try {
      if (!parse(argc, argv, app, group == nullptr || group->first())) return;
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
  CLI::App app(description);
  set_up(app, argv[0]);
  app.require_subcommand(1);
  for (Subcommand& sub : subcommands) {
    Flags flags(*app.add_subcommand(sub.name, sub.description));
    sub.command->add_options(flags);
    add_common(flags, *sub.command, common);
  }
  return run_as_program(common.program, [&] {
    if (!parse(argc, argv, app)) return;
    for (Subcommand& sub : subcommands) {
      if (!app.got_subcommand(sub.name)) continue;
      begin(common, *sub.command);
      sub.command->run(common);
    }
  });
}

namespace {

// Whether the characters that follow are shown in another direction: U+202A to U+202E and U+2066 to
// U+2069. By them a name can be made to look like another.
bool turns_text(std::string_view character) {
  if (character.size() != 3 || character[0] != '\xE2') return false;
  const auto last = static_cast<unsigned char>(character[2]);
  return (character[1] == '\x80' && last >= 0xAA && last <= 0xAE) ||
         (character[1] == '\x81' && last >= 0xA6 && last <= 0xA9);
}

// The length of the UTF-8 character that `text` begins with; 0 if it is a control character
// (including 0x80 to 0x9f, which terminals obey like escapes), turns_text(), or is not UTF-8.
std::size_t printable_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return first < 0x20 || first == 0x7F ? 0 : 1;
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool control = first == 0xC2 && byte(1) < 0xA0;
  return control || turns_text(text.substr(0, bytes)) ? 0 : bytes;
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto code = static_cast<unsigned char>(text.front());
    const std::size_t bytes = printable_bytes(text);
    if (bytes > 0) {
      result += text.substr(0, bytes);
    } else {
      result += code == '\n' ? std::string("\\n") : fmt::format("\\x{:02x}", code);
    }
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return result;
}

namespace {

// $'...', with a backslash in front of whatever is no plain character.
std::string quoted_bytes(std::string_view text) {
  std::string out = "$'";
  while (!text.empty()) {
    const std::size_t bytes = printable_bytes(text);
    if (bytes == 0) {
      // Octal: of at most three digits, so that one that follows is not read with them.
      out += fmt::format("\\{:03o}", static_cast<unsigned char>(text.front()));
    } else {
      if (text.front() == '\'' || text.front() == '\\') out += '\\';
      out += text.substr(0, bytes);
    }
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return out + "'";
}

}  // namespace

std::string shell_word(const std::string& text) {
  if (!text.empty() &&
      text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             "_-./=:,+@%") == std::string::npos) {
    return text;
  }
  // What one_line() would change is written as bash, ksh and zsh read it back.
  if (one_line(text) != text) return quoted_bytes(text);
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace rk
