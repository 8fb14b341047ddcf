// Where a recipe is: the file of that name, or one of those that come along with the programs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rk {

// Of the running program: recipes/ of the tree it was built in, share/rankine/recipes where it was
// installed.
std::vector<std::filesystem::path> recipe_folders();

// `name` where there is such a file; otherwise, for a bare name, `name` or `name`.toml in the first
// of `folders` that has it. InputError that lists those that are there.
std::string find_recipe(const std::string& name,
                        const std::vector<std::filesystem::path>& folders = recipe_folders());

}  // namespace rk
