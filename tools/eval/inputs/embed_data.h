// eval's embeddings from a data set through a checkpoint's network.
#pragma once

#include "engine/device/context.h"
#include "tools/cli/cli.h"
#include "tools/eval/inputs/network_options.h"
#include "tools/eval/inputs/rows.h"
#include "training/embed.h"

namespace rk {

// Prints what is to be said of the weights as notes.
Checkpoint open_network(const NetworkOptions& options);

// The pictures of `data` as rows; how many --skip-bad left out is said.
EmbeddingSet embed_pictures(CheckpointEmbedder& embedder, const Dataset& data,
                            const NetworkOptions& options, const CommonOptions& common);

// Pictures are turned by EXIF as the network's training pictures were, unless --data says
// otherwise.
// Facts: skipped_images, classes_trained_on, chose_the_epoch.
Rows embed_data(const Context& context, const NetworkOptions& options, const CommonOptions& common);

}  // namespace rk
