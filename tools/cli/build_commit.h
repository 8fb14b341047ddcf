// The commit that the program was built from, "..., with changes" if files differed from it; empty
// if it was not built in a git repository. cmake/commit.cmake writes it at every build.
#pragma once

#include <string_view>

namespace rk {

std::string_view build_commit();

}  // namespace rk
