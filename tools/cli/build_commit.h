// The commit that the program was built from, "..., with changes" where files differed from it;
// empty where it was not built in a git repository. Written by cmake/commit.cmake at every build.
#pragma once

#include <string_view>

namespace rk {

std::string_view build_commit();

}  // namespace rk
