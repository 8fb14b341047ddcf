// What a computation runs on: passed explicitly to everything that computes, so there are no
// globals. Holds the number of threads and the libraries' handles.
#pragma once

#include <memory>

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
  OneDnn& onednn() const { return *onednn_; }

 private:
  int threads_;
  std::unique_ptr<OneDnn> onednn_;
};

}  // namespace rk
