// Whether a network learnt from pictures turned upright: key exif of the data it was trained on.
#pragma once

#include "data/spec.h"
#include "weights/checkpoint.h"

#include <string>

namespace rk {

// "turn" or "ignore"; "" where neither the run's settings nor the weights say (the data are drawn,
// or the file is from elsewhere).
std::string training_exif(const Checkpoint& checkpoint);

// `spec` with exif=turn, where it has a path and says nothing of exif and the network learnt so
// (`before`, of training_exif()).
DataSpec with_training_exif(DataSpec spec, const std::string& before);

// A note where `data`, a data specification, is seen otherwise than what the network learnt from
// (`before`, of training_exif()). UsageError where it is none.
void note_other_exif(const std::string& before, const std::string& data);

}  // namespace rk
