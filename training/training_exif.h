// Whether a network learnt from pictures turned upright: key exif of the data it was trained on.
#pragma once

#include "weights/checkpoint.h"

#include <string>

namespace rk {

// "turn" or "ignore"; "" where the run's settings do not say (its data are drawn, or the file is
// from elsewhere).
std::string training_exif(const Checkpoint& checkpoint);

}  // namespace rk
