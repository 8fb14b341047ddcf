// Computes eval's embeddings of a data set with the network of a checkpoint.
#pragma once

#include "engine/device/context.h"
#include "tools/cli/cli.h"
#include "tools/eval/inputs/described_rows.h"
#include "tools/eval/inputs/network_options.h"
#include "training/embed.h"

namespace rk {

// Opens the checkpoint; remarks about the weights become notes.
Checkpoint open_network(const NetworkOptions& options);

// Embeds the pictures of `data`; prints which ones --skip-bad left out. Throws InputError if the
// network makes a number that is not finite.
EmbeddingSet embed_pictures(CheckpointEmbedder& embedder, const Dataset& data,
                            const NetworkOptions& options, const CommonOptions& common);

// Turns pictures by EXIF if the network was trained so and --data does not say otherwise. The facts
// are precision and, if they apply, classes_trained_on and chose_the_epoch. gallery: what the rows
// will be searched in, null if nothing; refused before anything is embedded if it does not fit.
DescribedRows embed_data(const Context& context, const NetworkOptions& options,
                         const DescribedRows* gallery, const CommonOptions& common);

}  // namespace rk
