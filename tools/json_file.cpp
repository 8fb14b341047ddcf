#include "tools/json_file.h"

#include "engine/error.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include <unistd.h>

namespace rk {
namespace {

[[noreturn]] void refuse(const std::string& path) {
  fail<InputError>("{}: cannot be written: {}; see that its folder exists and has space", path,
                   std::strerror(errno));
}

void write_bytes(const std::string& path, const std::string& text, bool durable) {
  std::FILE* file = std::fopen(path.c_str(), "wbe");
  if (file == nullptr) refuse(path);
  bool good = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  good = std::fflush(file) == 0 && good;
  if (durable) good = fsync(fileno(file)) == 0 && good;
  const int reason = errno;
  good = std::fclose(file) == 0 && good;
  if (good) return;
  if (reason != 0) errno = reason;
  refuse(path);
}

}  // namespace

void write_json(const std::string& path, const nlohmann::json& value) {
  const std::string text =
      value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    write_bytes(path, text, false);
    return;
  }
  const std::filesystem::path target(path);
  const std::string temporary =
      (target.parent_path() / fmt::format(".{}.tmp.{}", target.filename().string(), getpid())).string();
  try {
    write_bytes(temporary, text, true);
    if (std::rename(temporary.c_str(), path.c_str()) != 0) refuse(path);
  } catch (...) {
    std::remove(temporary.c_str());
    throw;
  }
}

}  // namespace rk
