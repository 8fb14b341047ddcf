// `folder:root[,categories=a+b]` reads root/[split/][category/]class/image.
//
// root has the split level when every folder in it is named train, val or test. A folder with
// images is a class; a folder with folders is a category (one level). Names that begin with '.' are
// ignored, and so are files whose ending is not one of jpg jpeg png bmp gif webp tif tiff ppm pgm;
// what a file holds is decided by its content when it is decoded. Links are followed.
// Errors (InputError): missing, empty or unreadable folder; class folder without images; images and
// folders side by side; folders deeper than a class; something that is neither file nor folder; a
// loop of links; a class that is in two splits; a category that is not there (near names
// suggested).
#pragma once

#include "data/dataset.h"

#include <vector>

namespace rk {

std::vector<Split> folder_splits(const DataSpec& spec);  // empty: flat
// A flat folder gives the same for every split.
Dataset read_folder(const DataSpec& spec, Split split);

}  // namespace rk
