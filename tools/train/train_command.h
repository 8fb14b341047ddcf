// train: an embedding from images, in epochs, in a folder that can be gone on from.
#pragma once

#include "tools/cli/cli.h"

#include <memory>

namespace rk {

std::unique_ptr<Command> make_train();

}  // namespace rk
