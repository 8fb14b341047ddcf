// Which folders of a data set are splits, by their names; folder.h says what is taken for one.
#pragma once

#include "data/sources/dataset.h"
#include "data/spec.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rk {

// The split that a folder's name stands for; nullopt: not the name of a split.
std::optional<Split> split_of_folder(const std::string& name);

struct SplitFolder {
  Split split;
  std::string name;
};

struct SplitFolders {
  std::vector<SplitFolder> folders;  // in the order of Split; empty: the root holds classes or
                                     // categories
  std::vector<SplitFolder> hollow;   // named like splits, with nothing in them
  std::map<std::string, std::int64_t> others;  // files beside them, by their endings
};

// Throws InputError if spec.path is no folder, or holds splits beside other folders; empty folders
// named like splits count as neither.
SplitFolders split_folders(const DataSpec& spec);

// Test, query and gallery may share classes.
bool is_for_test(Split split);

// The splits of the data: those of split_folders(), and `test` where query and gallery make it up;
// empty: flat.
std::vector<Split> folder_splits(const DataSpec& spec);

}  // namespace rk
