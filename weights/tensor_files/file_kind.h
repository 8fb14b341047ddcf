// Detects the kind of a file by its first bytes, never by its name.
#pragma once

#include <string>
#include <string_view>

namespace rk {

bool is_zip(std::string_view file);
bool is_hdf5(std::string_view file);
bool is_tar(std::string_view file);
bool is_safetensors(std::string_view file);
bool is_pickle(std::string_view file);

// Names a file that was probably given by mistake, with what to do: "is a web page; ...". Empty if
// unknown.
std::string other_kind(std::string_view file);

}  // namespace rk
