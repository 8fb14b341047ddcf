// The peak memory of a piece of work, measured from outside.
#pragma once

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <exception>
#include <functional>

namespace rk {

// Forks a child that does `work` and returns the peak resident bytes of the child or of the largest
// process that it starts; what this process holds already counts. An exception of `work` is
// ignored; a signal that ends the child fails the test.
inline std::int64_t peak_bytes(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      work();
    } catch (const std::exception&) {
    }
    ::_exit(0);
  }
  int status = -1;
  rusage used{};
  EXPECT_EQ(::wait4(child, &status, 0, &used), child);
  EXPECT_EQ(status, 0) << "it did not end by itself";
  return std::int64_t{used.ru_maxrss} * 1024;
}

}  // namespace rk
