// All that differs between oneDNN 2 (Debian 12) and oneDNN 3 (Ubuntu 24.04, Debian 13): 3 knows no
// descriptions of operations as objects of their own, and names a few things anew.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace rk {

inline dnnl::memory::dims onednn_dims(const dnnl::memory::desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
  return desc.get_dims();
#else
  return desc.dims();
#endif
}

// Whether the library computes with these instructions.
inline bool onednn_uses(dnnl::cpu_isa instructions) {
  // Each value is a bit set that includes the bits of all instruction sets it implies.
  const auto used = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto asked = static_cast<unsigned>(instructions);
#if DNNL_VERSION_MAJOR < 3
  if (used == static_cast<unsigned>(dnnl::cpu_isa::all)) return true;
#endif
  return (used & asked) == asked;
}

// The plan of a Primitive (dnnl::matmul, ...) for the operands that its description lists. Raises
// dnnl::error if the library has none.
template <typename Primitive, typename... Operands>
typename Primitive::primitive_desc onednn_plan(const dnnl::engine& engine,
                                               const dnnl::primitive_attr& attributes,
                                               const Operands&... operands) {
#if DNNL_VERSION_MAJOR >= 3
  return typename Primitive::primitive_desc(engine, operands..., attributes);
#else
  return
      typename Primitive::primitive_desc(typename Primitive::desc(operands...), attributes, engine);
#endif
}

// The same of a gradient, whose plan asks for that of the forward pass.
template <typename Primitive, typename Forward, typename... Operands>
typename Primitive::primitive_desc onednn_backward_plan(const dnnl::engine& engine,
                                                        const dnnl::primitive_attr& attributes,
                                                        const Forward& forward,
                                                        const Operands&... operands) {
#if DNNL_VERSION_MAJOR >= 3
  return typename Primitive::primitive_desc(engine, operands..., forward, attributes);
#else
  return typename Primitive::primitive_desc(typename Primitive::desc(operands...), attributes,
                                            engine, forward);
#endif
}

inline void append_relu(dnnl::post_ops& post) {
#if DNNL_VERSION_MAJOR >= 3
  post.append_eltwise(dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
#else
  post.append_eltwise(1.0F, dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
#endif
}

}  // namespace rk
