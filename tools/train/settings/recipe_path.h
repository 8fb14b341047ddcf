// Finds a recipe: the file of that name, or one that is shipped with the programs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rk {

// The recipe folders of the running program: recipes/ of its build tree, or share/rankine/recipes
// of its installation.
std::vector<std::filesystem::path> recipe_folders();

// Returns `name` if there is such a file; otherwise, for a bare name, `name` or `name`.toml in the
// first of `folders` that has it. Throws InputError listing the available recipes.
std::string find_recipe(const std::string& name,
                        const std::vector<std::filesystem::path>& folders = recipe_folders());

}  // namespace rk
