// probe --image FILE: shows what a network sees of one picture.
//
// --out t.h5 gets /pixels, uint8 (H, W, 3), after decoding, Resize and CenterCrop, and /tensor,
// float32 (3, H, W), normalised; equal bit for bit to torchvision's evaluation transform on a PIL
// image. --out see.png, or --show see.png in addition, gets /pixels as a picture. --checkpoint uses
// the preprocessing of a run's network.
#pragma once

#include "tools/cli/cli.h"

#include <memory>

namespace rk {

std::unique_ptr<Command> make_probe_image();

}  // namespace rk
