// train: learns an embedding from images, in epochs, in a folder from which a run can be resumed.
#pragma once

#include "tools/cli/cli.h"

#include <memory>

namespace rk {

std::unique_ptr<Command> make_train();

}  // namespace rk
