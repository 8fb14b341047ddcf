// Opens a data set of any kind: a folder (folder.h) or drawn characters (glyphs.h).
//
// Splits. Splits hold different classes, except that test, query and gallery may share theirs. A
// data set either has splits of its own (a folder with train/ and test/, glyphs) or is flat: then
// the whole set serves as `train` or as `test`, as the caller chooses. Options of every kind:
//   val_classes=0.2       hold this share of the training classes out (at least one, never all):
//                         `train` is the rest, `val` the held-out ones; a flat set then has no
//                         `test`
//   val_order=default     the last classes of the table; random: drawn with val_seed=0
//   min_images=1          leave out classes with fewer images, counting query and gallery together
//   merge=1               merge training classes in threes with merge=3 (Dataset::merge()); other
//                         splits keep theirs: for studying a loss on labels coarser than the
//                         pictures (Li et al. 2022)
#pragma once

#include "data/sources/dataset.h"
#include "data/spec.h"

#include <string>
#include <string_view>
#include <vector>

namespace rk {

// Accepts every name listed in folder.h, in any case; throws UsageError for others.
Split parse_split(std::string_view name);

// The names of all kinds, and the help text of --data, one line per kind (only_files: of those that
// have files).
std::vector<std::string> dataset_kinds();
std::string dataset_help(bool only_files = false);

// parse_data_spec() for the kinds there are, with shorthands for users: ~/ at the front of a path
// is the home folder, and the bare path of a folder means folder:PATH.
DataSpec read_data_spec(std::string_view text);

// The splits of the data, from which training chooses the one to evaluate on: {train, val}, {train,
// test}, ...; a flat set without val_classes gives {train}.
std::vector<Split> dataset_splits(const DataSpec& spec);

Dataset open_dataset(const DataSpec& spec, Split split);
Dataset open_dataset(std::string_view spec, Split split);

}  // namespace rk
