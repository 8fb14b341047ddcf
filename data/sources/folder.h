// `folder:root[,categories=a+b][,splits=none][,exif=turn]` reads
// root/[split/][category/]class/image.
//
// root has the split level if every folder in it is named like a split, in any case: train
// (training), val (validation, valid, dev), test (testing), query (queries), gallery. Test, query
// and gallery may share classes; if there is no test folder, query and gallery together are `test`.
// A mix of split names and other names is refused, unless all folders named like splits hold images
// and no folders, which makes them classes; with splits=none all folders are classes or categories.
// A folder with images is a class; a folder with folders is a category (one level). Names that
// begin with '.' are ignored, as are the folders that archivers and file servers leave behind.
// exif=turn turns pictures upright according to their EXIF data (data/images/exif.h); exif=ignore
// (default) keeps them as stored and counts those that are not upright. Files whose ending is not
// one of jpg jpeg jpe jfif png bmp gif webp tif tiff ppm pgm are left out and counted; the format
// is detected from the content when a file is decoded. Links are followed. Empty folders are left
// out too; that of a split is as if it were not there. Errors (InputError): missing, empty or
// unreadable folder; class folder with files but no images; images and folders side by side;
// folders deeper than a class; something that is neither file nor folder; a loop of links; splits
// beside other folders; two folders for one split; a class in two splits; an unknown category (near
// names are suggested).
#pragma once

#include "data/sources/dataset.h"

namespace rk {

// Returns the same for every split if the folder is flat.
Dataset read_folder(const DataSpec& spec, Split split);

}  // namespace rk
