#include "tools/json_file.h"

#include "engine/error.h"
#include "weights/atomic_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>

namespace rk {
namespace {

// A rename would put a file in the place of a device or a pipe.
void write_as_it_is(const std::string& path, const std::string& text) {
  errno = 0;
  std::FILE* file = std::fopen(path.c_str(), "wbe");
  bool good = file != nullptr;
  if (good) {
    good = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    good = std::fclose(file) == 0 && good;
  }
  if (!good) {
    fail<InputError>("{}: cannot be written: {}; give another file", path, std::strerror(errno));
  }
}

}  // namespace

void write_json(const std::string& path, const nlohmann::json& value) {
  const std::string text =
      value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    write_as_it_is(path, text);
  } else {
    write_atomic(path, std::as_bytes(std::span(text)));
  }
}

}  // namespace rk
