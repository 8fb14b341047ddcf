// The rows of one evaluation, from files or from a network.
#pragma once

#include "engine/device/context.h"
#include "tools/cli/cli.h"
#include "tools/eval/inputs/described_rows.h"
#include "tools/eval/inputs/file_options.h"
#include "tools/eval/inputs/network_options.h"

namespace rk {

// Queries of the network, if it has a checkpoint, or else of the file; the gallery, if there is
// one, of its split or of its file, not matched with the queries yet (match_gallery()).
EvaluatedRows read_or_embed(const Context& context, const RowFiles& files,
                            const NetworkOptions& network, const CommonOptions& common);

}  // namespace rk
