// `folder:root[,categories=a+b][,splits=none][,exif=turn][,merge=3]` reads
// root/[split/][category/]class/image.
//
// root has the split level when every folder in it is named like a split, in large or small
// letters: train (training), val (validation, valid, dev), test (testing), query (queries),
// gallery. Query and gallery may share classes; where there is no test, they are it together. Some
// named so beside others are refused, unless they hold images, which makes them classes; with
// splits=none all are classes or categories.
// A folder with images is a class; a folder with folders is a category (one level). Names that
// begin with '.' are ignored, and so are the folders that archivers and file servers leave behind.
// exif=turn: pictures are turned upright as their files say (data/images/exif.h); ignore: seen as
// they are stored, and those that are not upright are counted. Files whose ending is not one of jpg
// jpeg jfif png bmp gif webp tif tiff ppm pgm are left out and counted; what a file holds is
// decided by its content when it is decoded. Links are followed.
// merge=3: training classes become one by threes, others stay (Dataset::merge()): what a loss makes
// of labels that say less than the pictures (Li et al. 2022).
// Empty folders are left out too. Errors (InputError): missing, empty or unreadable folder; class
// folder with files but no images; images and folders side by side; folders deeper than a class;
// something that is neither file nor folder; a loop of links; splits beside other folders; two
// folders for one split; a class that is in two splits; a category that is not there (near names
// suggested).
#pragma once

#include "data/sources/dataset.h"

#include <optional>
#include <string>
#include <vector>

namespace rk {

// By the name of its folder; nothing: not a split's.
std::optional<Split> split_of_folder(const std::string& name);
std::vector<Split> folder_splits(const DataSpec& spec);  // empty: flat
// A flat folder gives the same for every split.
Dataset read_folder(const DataSpec& spec, Split split);

// Pictures as they are named, one by one, or all that lie in a folder (sorted by name): one class
// without a meaning. `turn`: as exif=turn. InputError where a file is not there or a folder holds
// no pictures.
Dataset read_pictures(const std::vector<std::string>& files_and_folders, bool turn);

}  // namespace rk
