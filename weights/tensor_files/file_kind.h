// What kind a file is, told by its first bytes and never by its name.
#pragma once

#include <string>
#include <string_view>

namespace rk {

bool is_zip(std::string_view file);
bool is_hdf5(std::string_view file);
bool is_tar(std::string_view file);
bool is_safetensors(std::string_view file);
bool is_pickle(std::string_view file);

// What a file is that nobody meant to give, with what to do: "is a web page; ...". Empty where it
// cannot be told.
std::string other_kind(std::string_view file);

}  // namespace rk
