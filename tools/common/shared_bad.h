// The pictures of the training data that cannot be read, over all processes: each meets those of
// its own part of the batches.
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

  // What they have told one another so far, the same in all of them. `mine`: all that this
  // process's loader met. A call to one another.
  const std::vector<BadImage>& gather(const std::vector<BadImage>& mine);
  // The same with what this process alone knows yet, without a call.
  std::vector<BadImage> with(const std::vector<BadImage>& mine) const;

 private:
  BadImage described(std::int64_t index, const std::vector<BadImage>& mine) const;

  ProcessGroup& processes_;
  const Dataset& data_;
  std::vector<BadImage> all_;
  std::set<std::int64_t> known_;
};

}  // namespace rk
