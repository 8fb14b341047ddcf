// How a batch is taken apart: into equal shares of several processes, and a share into chunks that
// the network sees at a time.
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
  // The embeddings lie where the network puts them.
  bool in_one_piece() const { return chunks() == 1 && processes->alone(); }
  // Where this process's share begins in something of the whole batch with `width` values an image.
  std::int64_t share_begin(std::int64_t width) const { return processes->rank() * share() * width; }
};

}  // namespace rk
