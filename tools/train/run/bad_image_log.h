// The training pictures that cannot be read: those of all processes, each of which meets only those
// in its own part of the batches, and their list in the run's folder.
//
// `mine` is all that this process's loader has met.
#pragma once

#include "data/loader/loader.h"
#include "data/sources/dataset.h"
#include "engine/group/process_group.h"
#include "tools/common/image_check.h"

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rk {

class BadImageLog {
 public:
  // Processes and data must outlive the object.
  BadImageLog(ProcessGroup& processes, const Dataset& data, std::string folder)
      : processes_(processes), data_(data), list_(std::move(folder)) {}

  // Of the pictures that a checkpoint records, those that still cannot be read.
  std::vector<BadImage> still_bad(const std::vector<std::int64_t>& recorded) const;

  // Exchanges the bad pictures, after which all processes know the same. A collective call: all
  // processes must make it.
  void share(const std::vector<BadImage>& mine);
  // Throws InputError if more are shared than --max-bad allows.
  void require_few(std::int64_t max_bad) const;

  // The following include this process's own new ones, without communication.
  std::vector<std::int64_t> indices(const std::vector<BadImage>& mine) const;
  // Brings bad_files.txt up to date; returns lines for the user (BadImageFile::update()).
  std::vector<std::string> list(const std::vector<BadImage>& mine);

 private:
  std::vector<BadImage> with(const std::vector<BadImage>& mine) const;
  BadImage described(std::int64_t index, const std::vector<BadImage>& mine) const;

  ProcessGroup& processes_;
  const Dataset& data_;
  BadImageFile list_;
  std::vector<BadImage> shared_;
  std::set<std::int64_t> known_;  // the indices of shared_
};

}  // namespace rk
