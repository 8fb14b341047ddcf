// The exceptions that end a program, and the exit code of each.
//
// What a user can cause is an exception derived from Error; main() prints `error: <message>` as one
// line on standard error and returns exit_code(). Messages name the file or the operator first,
// then what was found, then what to do:  "photos/a.jpg: truncated JPEG; remove it or copy it
// again". What else may be thrown is a mistake of the caller (expect; exit code 2), of the system
// (std::bad_alloc, std::system_error; 5 and 3), or a failure inside (1).
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace rk {

enum class ExitCode : int {
  kDone = 0,
  kUsage = 2,
  kBadInput = 3,
  kDiverged = 4,
  kDevice = 5,
};

class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode exit_code() const { return code_; }

 private:
  ExitCode code_;
};

// A flag or parameter value that makes no sense (exit code 2).
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message) : Error(ExitCode::kUsage, message) {}
};

// A file, data set or tensor that cannot be used as it is (exit code 3).
class InputError : public Error {
 public:
  explicit InputError(const std::string& message) : Error(ExitCode::kBadInput, message) {}
};

// Training produced a loss, a gradient or an embedding that is not finite or beyond any use (exit
// code 4).
class DivergedError : public Error {
 public:
  explicit DivergedError(const std::string& message) : Error(ExitCode::kDiverged, message) {}
};

// The device or its libraries failed (exit code 5).
class DeviceError : public Error {
 public:
  explicit DeviceError(const std::string& message) : Error(ExitCode::kDevice, message) {}
};

// Memory that could not be had (exit code 5). The message ends where run_program() adds with which
// flags its command takes less.
class OutOfMemory : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// What was under way on the device failed (exit code 5). It carries out nothing more for this
// process, so that this is no DeviceError: whoever does without what the device refuses must not go
// on.
class DeviceFault : public Error {
 public:
  explicit DeviceFault(const std::string& message) : Error(ExitCode::kDevice, message) {}
};

// Throws E with a formatted message: fail<InputError>("{}: no rows", path).
template <class E, class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw E(fmt::format(format, std::forward<Args>(args)...));
}

// Checks an argument that the caller of the library must get right: throws std::invalid_argument
// "[op] expected ..., got ...". Checked once, before dispatch, never in an inner loop.
template <class... Args>
void expect(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) throw std::invalid_argument(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace rk
