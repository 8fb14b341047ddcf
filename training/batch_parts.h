// How a batch is divided: into equal shares, one per process, and each share into chunks that the
// network processes one at a time.
#pragma once

#include "engine/group/process_group.h"

#include <cstdint>

namespace rk {

struct BatchParts {
  std::int64_t batch = 0;  // images
  std::int64_t chunk = 0;
  const ProcessGroup* processes = nullptr;

  std::int64_t share() const { return batch / processes->size(); }
  std::int64_t chunks() const { return share() / chunk; }
  // The embeddings stay where the network writes them.
  bool in_one_piece() const { return chunks() == 1 && processes->alone(); }
  // Offset of this process's share in an array of the whole batch with `width` values per image.
  std::int64_t share_begin(std::int64_t width) const { return processes->rank() * share() * width; }
};

}  // namespace rk
