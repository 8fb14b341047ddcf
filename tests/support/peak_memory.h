// The peak memory of a piece of work, measured from outside.
#pragma once

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <exception>
#include <functional>

#ifdef __has_feature
#define RK_HAS_FEATURE(name) __has_feature(name)
#else
#define RK_HAS_FEATURE(name) 0
#endif

namespace rk {

// Under a sanitizer a program takes many times its own memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    RK_HAS_FEATURE(address_sanitizer) || RK_HAS_FEATURE(thread_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

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
