// Whether a network was trained on pictures turned upright: the key exif of its training data.
#pragma once

#include "data/spec.h"
#include "weights/checkpoint.h"

#include <string>

namespace rk {

// Returns "turn" or "ignore"; "" if neither the run's settings nor the weights tell (the data are
// drawn, or the file comes from elsewhere).
std::string training_exif(const Checkpoint& checkpoint);

// Returns `spec` with exif=turn added if it has a path, does not set exif, and the network was
// trained so (`before`, from training_exif()).
DataSpec with_training_exif(DataSpec spec, const std::string& before);

// Prints a note if the data treat EXIF differently from the network's training data (`before`, from
// training_exif()), and returns it; "": none.
std::string note_other_exif(const std::string& before, const DataSpec& spec);

}  // namespace rk
