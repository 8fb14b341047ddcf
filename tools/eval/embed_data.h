// eval's embeddings from a data set through a checkpoint's network.
#pragma once

#include "engine/context.h"
#include "tools/cli.h"
#include "tools/eval/network_options.h"
#include "tools/eval/rows.h"

namespace rk {

// Facts: skipped_images, classes_trained_on. Writes --save-embeddings.
Rows embed_data(const Context& context, const NetworkOptions& options, const CommonOptions& common);

}  // namespace rk
