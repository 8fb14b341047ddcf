// oneDNN's engine and stream, and a primitive bound to its memory: for the Context, products and
// the folders called onednn.
#pragma once

#include "engine/base/error.h"

#include <oneapi/dnnl/dnnl.hpp>

#include <new>
#include <string>
#include <utility>
#include <vector>

namespace rk {

struct OneDnn {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

// What to throw in place of an error of the library: std::bad_alloc if it got no memory, else
// DeviceError "[what] <its words>".
[[noreturn]] inline void refused_by_onednn(const std::string& what, const dnnl::error& error) {
  if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
  fail<DeviceError>("[{}] oneDNN: {} (status {})", what, error.what(),
                    static_cast<int>(error.status));
}

// A primitive with all its arguments at fixed addresses: running it neither allocates nor looks up
// anything on our side (the C++ interface would build a vector for every call).
class BoundPrimitive {
 public:
  struct Argument {
    int index;  // DNNL_ARG_SRC, ...
    dnnl::memory::desc desc;
    void* data;
  };

  BoundPrimitive() = default;
  BoundPrimitive(OneDnn& onednn, dnnl::primitive primitive, const std::vector<Argument>& arguments)
      : stream_(&onednn.stream), primitive_(std::move(primitive)) {
    for (const Argument& a : arguments) {
      memories_.emplace_back(a.desc, onednn.engine, a.data);
      arguments_.push_back({a.index, memories_.back().get()});
    }
  }

  explicit operator bool() const { return stream_ != nullptr; }

  // Changes the address of the i-th argument of the constructor's list.
  void move_argument(std::size_t i, void* data) { memories_[i].set_data_handle(data); }

  void run() const {
    const dnnl_status_t status = dnnl_primitive_execute(
        primitive_.get(), stream_->get(), static_cast<int>(arguments_.size()), arguments_.data());
    if (status == dnnl_out_of_memory) throw std::bad_alloc();
    if (status != dnnl_success) {
      fail<DeviceError>("[onednn] a primitive failed with status {}", static_cast<int>(status));
    }
  }

 private:
  dnnl::stream* stream_ = nullptr;
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

}  // namespace rk
