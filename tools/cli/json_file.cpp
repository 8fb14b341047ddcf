#include "tools/cli/json_file.h"

#include "engine/base/error.h"
#include "engine/driver/device.h"
#include "engine/driver/gpu_state.h"
#include "engine/system/signals.h"
#include "weights/atomic_file.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

namespace rk {
namespace {

int standard_output = -1;  // the original one, once it is given to JSON

constexpr int kPollMilliseconds = 50;  // between checks for signals

void stop_waiting_if_interrupted(const std::string& path) {
  if (!interrupted()) return;
  throw Interrupted(
      fmt::format("stopped: nobody reads {}, so the result was not written there", path));
}

// Waits for a reader if `path` is a pipe.
int open_for_writing(const std::string& path) {
  for (;;) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor >= 0 || errno != ENXIO) return descriptor;
    stop_waiting_if_interrupted(path);
    std::this_thread::sleep_for(std::chrono::milliseconds(kPollMilliseconds));
  }
}

// A signal stops only the waiting for a reader: one that came earlier, while the program finished
// what it computes, loses no result.
bool write_all(const std::string& path, int descriptor, std::string_view text) {
  while (!text.empty()) {
    pollfd room{descriptor, POLLOUT, 0};
    if (::poll(&room, 1, kPollMilliseconds) <= 0) {  // the reader is slow
      stop_waiting_if_interrupted(path);
      continue;
    }
    // A pipe that has room takes as much without waiting.
    const std::string_view part = text.substr(0, PIPE_BUF);
    const ssize_t written = ::write(descriptor, part.data(), part.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EAGAIN && errno != EINTR) {
      return false;
    }
  }
  return true;
}

// Writes all of `text` and closes `descriptor`, which is negative if opening failed. Throws
// ReaderGone if `path` is a pipe whose reader has ended, InputError on other failures, Interrupted
// if a signal ends the waiting for a reader.
void write_through(const std::string& path, int descriptor, const std::string& text) {
  int reason = errno;
  bool good = false;
  if (descriptor >= 0) {
    try {
      good = write_all(path, descriptor, text);
    } catch (const Interrupted&) {
      ::close(descriptor);
      throw;
    }
    reason = errno;
    if (::close(descriptor) != 0 && good) {
      good = false;
      reason = errno;
    }
  }
  if (good) return;
  if (reason == EPIPE) throw ReaderGone();
  fail<InputError>("{}: cannot be written: {}; see that it is there and has space", path,
                   std::strerror(reason));
}

constexpr const char* kProgramKey = "program";
constexpr const char* kProgram = "Rankine";

// Null if its driver does not answer.
nlohmann::json state_of_gpu(int index) {
  const auto state = gpu_state(gpu_bus(index));
  if (!state) return nullptr;
  return {{"sm_mhz", state->sm_mhz},
          {"memory_mhz", state->memory_mhz},
          {"most_sm_mhz", state->most_sm_mhz},
          {"most_memory_mhz", state->most_memory_mhz},
          {"watts", state->watts},
          {"celsius", state->celsius}};
}

// Looks for the top-level "program": "Rankine" and stops as soon as it is found.
class ProgramFinder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool found() const { return found_; }

  bool key(string_t& name) override {
    here_ = depth_ == 1 && name == kProgramKey;
    return true;
  }
  bool string(string_t& text) override {
    found_ = here_ && depth_ == 1 && text == kProgram;
    return !found_;
  }
  bool start_object(std::size_t) override { return ++depth_, true; }
  bool end_object() override { return --depth_, true; }
  // A result does not begin with a list.
  bool start_array(std::size_t) override { return depth_++ > 0; }
  bool end_array() override { return --depth_, true; }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }

 private:
  std::size_t depth_ = 0;
  bool here_ = false, found_ = false;
};

}  // namespace

void give_standard_output_to_json() {
  if (standard_output >= 0) return;
  std::fflush(stdout);
  standard_output = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  if (standard_output < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    fail<InputError>("--json -: standard output is closed; give a file");
  }
}

void write_json(const std::string& path, const nlohmann::json& value) {
  const std::string text =
      value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (path == kStandardOutput) {
    expect(standard_output >= 0, "[json] expected give_standard_output_to_json() before");
    return write_through("standard output", ::fcntl(standard_output, F_DUPFD_CLOEXEC, 0), text);
  }
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    // A device or pipe is written to, not replaced.
    write_through(path, open_for_writing(path), text);
  } else {
    write_atomic(path, text);
  }
}

void write_result(const CommonOptions& common, int threads, nlohmann::json result) {
  if (common.json.empty()) return;
  result.update({{kProgramKey, kProgram},
                 {"version", RK_VERSION},
                 {"device", common.device},
                 {"threads", threads}});
  if (const Device device = device_of(common); device.cuda) {
    const nlohmann::json state = state_of_gpu(device.index);
    if (!state.is_null()) result["gpu"] = state;
  }
  write_json(common.json, result);
}

bool is_result_of_rankine(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  ProgramFinder finder;
  nlohmann::json::sax_parse(file, &finder);
  return finder.found();
}

}  // namespace rk
