#include "tools/json_file.h"

#include "engine/device.h"
#include "engine/dispatch.h"
#include "engine/error.h"
#include "engine/gpu_state.h"
#include "weights/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>

namespace rk {
namespace {

int standard_output = -1;  // what it was before it was given to JSON

// Writes all of it and closes `file`, which may be null.
void write_through(const std::string& path, std::FILE* file, const std::string& text) {
  bool good = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  good = good && std::fflush(file) == 0;
  const int reason = errno;
  if (file != nullptr) good = std::fclose(file) == 0 && good;
  if (good) return;
  fail<InputError>("{}: cannot be written: {}; see that its folder exists and has space", path,
                   std::strerror(reason));
}

nlohmann::json with_gpu(nlohmann::json value) {
  if constexpr (kHasCuda) {
    const auto device = value.find("device");
    if (device == value.end() || !device->is_string()) return value;
    const auto name = device->get<std::string>();
    if (!name.starts_with("cuda")) return value;
    const std::string bus = gpu_bus(parse_device(name).device().index);
    if (const auto state = gpu_state(bus)) {
      value["gpu"] = {{"sm_mhz", state->sm_mhz},
                      {"memory_mhz", state->memory_mhz},
                      {"most_sm_mhz", state->most_sm_mhz},
                      {"most_memory_mhz", state->most_memory_mhz},
                      {"watts", state->watts},
                      {"celsius", state->celsius}};
    }
  }
  return value;
}

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
      with_gpu(value).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (path == kStandardOutput) {
    expect(standard_output >= 0, "[json] expected give_standard_output_to_json() before");
    const int copy = ::fcntl(standard_output, F_DUPFD_CLOEXEC, 0);
    return write_through("standard output", copy < 0 ? nullptr : ::fdopen(copy, "wb"), text);
  }
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    write_through(path, std::fopen(path.c_str(), "wbe"), text);
  } else {
    write_atomic(path, std::as_bytes(std::span(text.data(), text.size())));
  }
}

}  // namespace rk
