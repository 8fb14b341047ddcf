// A whole file into memory, with a cap. Only regular files are read (no directories, pipes or
// devices), so nothing here can block or grow without end. Errors: InputError "<path>: <what>;
// <what to do>"; where the system would not give what may well be a good file, SystemError.
#pragma once

#include "engine/error.h"

#include <cstddef>
#include <string>
#include <vector>

namespace rk {

// The system failed, not the file: no permission, a failing disk or server, too many open files, no
// memory. What is asked again later may be there.
class SystemError : public InputError {
 public:
  using InputError::InputError;
};

std::vector<std::byte> read_file(const std::string& path, std::size_t max_bytes);

}  // namespace rk
