// oneDNN's engine and stream. Only *_onednn.cpp files include this.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace rk {

struct OneDnn {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

}  // namespace rk
