// What a computation runs on: passed explicitly to everything that computes, so there are no
// globals. Holds the number of threads and the libraries' handles.
#pragma once

#include <memory>
#include <string>

namespace rk {

struct OneDnn;  // engine/onednn.h

class Context {
 public:
  // threads <= 0: as many as the machine (or its cgroup) lets this process use.
  explicit Context(int threads = 0);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  int threads() const { return threads_; }
  // All but the program itself that the last bits of a result depend on: processor, libraries,
  // threads. Runs are bit-equal where these are.
  std::string describe() const;
  OneDnn& onednn() const { return *onednn_; }

 private:
  int threads_;
  std::unique_ptr<OneDnn> onednn_;
};

}  // namespace rk
