// Bilinear resampling, equal byte for byte to Pillow 13's Image.resize(size, BILINEAR).
//
// For each axis, with source length n and result length m: scale = n/m, f = max(1, scale), centre =
// (x + 0.5) scale, taps [max(0, int(centre - f + 0.5)), min(n, int(centre + f + 0.5))), weight
// max(0, 1 - |(i + first - centre + 0.5) / f|), normalised in double and rounded to 22 bits. Each
// pass rounds to uint8. The vertical pass goes first if the height shrinks by more than twice as
// many pixels as the width, otherwise the horizontal pass does; an axis that keeps its length is
// not filtered.
//
// `source` is a rectangle of `image` treated as a picture of its own (crop, then resize, without
// the copy). `part` is the rectangle of the result to compute; its bytes equal those of the whole
// result. Throws std::invalid_argument if a rectangle does not fit. Thread-safe.
#pragma once

#include "data/images/image.h"

namespace rk {

Image resize(const Image& image, int width, int height);
Image resize(const Image& image, const Box& source, int width, int height);
Image resize_part(const Image& image, const Box& source, int width, int height, const Box& part);

}  // namespace rk
