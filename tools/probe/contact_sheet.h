// Pictures side by side in one.
#pragma once

#include "data/images/image.h"

#include <span>

namespace rk {

// `pictures`, all of one size, in rows and about as many columns, with grey lines between them.
Image contact_sheet(std::span<const Image> pictures);

}  // namespace rk
