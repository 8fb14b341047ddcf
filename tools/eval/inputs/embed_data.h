// eval's embeddings from a data set through a checkpoint's network.
#pragma once

#include "engine/device/context.h"
#include "tools/cli/cli.h"
#include "tools/eval/inputs/network_options.h"
#include "tools/eval/inputs/rows.h"
#include "training/embed.h"

namespace rk {

// What is said of the weights on the way are notes. `batch`: images at a time.
CheckpointEmbedder open_network(const Context& context, const NetworkOptions& options,
                                std::int64_t batch);

// The pictures of `data` as rows; how many --skip-bad left out is said.
EmbeddingSet embed_pictures(CheckpointEmbedder& embedder, const Dataset& data,
                            const NetworkOptions& options, const CommonOptions& common);

// Facts: skipped_images, classes_trained_on, chose_the_epoch.
Rows embed_data(const Context& context, const NetworkOptions& options, const CommonOptions& common);

}  // namespace rk
