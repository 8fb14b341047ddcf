// Base of tests that have a folder of their own.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace rk {

// `Folder`: a TemporaryFolder or a kind of it.
template <class Folder> class FolderTest : public testing::Test {
 protected:
  std::string in(const std::string& name) const { return folder_.in(name); }

  const Folder folder_{};
};

}  // namespace rk
