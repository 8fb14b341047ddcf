// Collects the unreadable pictures of the training data over all processes, each of which meets
// only those in its own part of the batches.
#pragma once

#include "data/loader/loader.h"
#include "data/sources/dataset.h"
#include "engine/group/process_group.h"

#include <cstdint>
#include <set>
#include <vector>

namespace rk {

class SharedBadImages {
 public:
  SharedBadImages(ProcessGroup& processes, const Dataset& data)
      : processes_(processes), data_(data) {}

  // Exchanges the bad pictures and returns all known so far, the same in all processes. `mine`: all
  // that this process's loader has met. A collective call: all processes must make it.
  const std::vector<BadImage>& gather(const std::vector<BadImage>& mine);
  // The result of the last gather() plus this process's own new ones, without communication.
  std::vector<BadImage> with(const std::vector<BadImage>& mine) const;

 private:
  BadImage described(std::int64_t index, const std::vector<BadImage>& mine) const;

  ProcessGroup& processes_;
  const Dataset& data_;
  std::vector<BadImage> all_;
  std::set<std::int64_t> known_;
};

}  // namespace rk
