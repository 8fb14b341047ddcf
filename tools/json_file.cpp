#include "tools/json_file.h"

#include "engine/device.h"
#include "engine/dispatch.h"
#include "engine/error.h"
#include "engine/gpu_state.h"
#include "weights/atomic_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>

namespace rk {
namespace {

// A device or pipe is not replaced but written to.
void write_through(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "wbe");
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

void write_json(const std::string& path, const nlohmann::json& value) {
  const std::string text =
      with_gpu(value).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    write_through(path, text);
  } else {
    write_atomic(path, std::as_bytes(std::span(text.data(), text.size())));
  }
}

}  // namespace rk
