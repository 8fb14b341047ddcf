// A whole file into memory, with a cap. Only regular files are read (no directories, pipes or
// devices), so nothing here can block or grow without end. Errors: InputError "<path>: <what>;
// <what to do>".
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace rk {

std::vector<std::byte> read_file(const std::string& path, std::size_t max_bytes);

}  // namespace rk
