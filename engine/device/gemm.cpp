#include "engine/device/gemm.h"

#include "engine/base/error.h"
#include "engine/device/buffer.h"
#include "engine/device/cuda/context.h"
#include "engine/device/onednn.h"

#include <algorithm>
#include <new>

namespace rk {
namespace {

using Descriptor = dnnl::memory::desc;

Descriptor described(const Factor& factor) {
  const std::int64_t rows = factor.rows, columns = factor.columns, stride = factor.stride;
  constexpr auto kFloat = dnnl::memory::data_type::f32;
  using Dims = dnnl::memory::dims;
  if (factor.transposed) return {{columns, rows}, kFloat, Dims{1, stride}};
  return {{rows, columns}, kFloat, Dims{stride, 1}};
}

void check(const MatrixProduct& product) {
  const auto& [a, b, c, bias, accumulate] = product;
  const std::int64_t a_rows = a.transposed ? a.columns : a.rows;
  const std::int64_t b_rows = b.transposed ? b.columns : b.rows;
  const std::int64_t b_columns = b.transposed ? b.rows : b.columns;
  expect(a_rows == c.rows && b_rows == product.k() && b_columns == c.columns,
         "[gemm] expected (m, k) (k, n) = (m, n), got ({}, {}) ({}, {}) = ({}, {})", a_rows,
         product.k(), b_rows, b_columns, c.rows, c.columns);
  expect(a.type == b.type && (c.type == a.type || c.type == DType::kFloat32),
         "[gemm] expected factors of one type, and a result of that type or float32");
}

}  // namespace

void gemm(const Context& context, const MatrixProduct& product) {
  check(product);
  const std::int64_t m = product.m(), n = product.n(), k = product.k();
  if (m == 0 || n == 0) return;
  expect(product.bias == nullptr, "[gemm] expected no bias, which only a PreparedGemm adds");
  if (context.on_gpu()) return context.cuda().gemm(product);
  const auto* a = product.a.as<const float>();
  const auto* b = product.b.as<const float>();
  auto* c = product.c.as<float>();
  const std::int64_t stride = product.c.stride;
  if (k == 0) {  // an empty sum, which oneDNN refuses
    for (std::int64_t i = 0; i < m && !product.accumulate; ++i) {
      std::fill_n(c + i * stride, n, 0.0F);
    }
    return;
  }
  const auto form = [](const Factor& factor) { return factor.transposed ? 'T' : 'N'; };
  const dnnl_status_t status =
      dnnl_sgemm(form(product.a), form(product.b), m, n, k, 1.0F, a, product.a.stride, b,
                 product.b.stride, product.accumulate ? 1.0F : 0.0F, c, stride);
  if (status == dnnl_out_of_memory) throw std::bad_alloc();
  if (status != dnnl_success) {
    fail<DeviceError>("[gemm] oneDNN refused m={} n={} k={} (status {})", m, n, k,
                      static_cast<int>(status));
  }
}

// On a GPU the product that its context prepared; on the CPU oneDNN's, with its scratchpad.
struct PreparedGemm::Impl {
  Impl(const Context& context, const MatrixProduct& p) {
    check(p);
    if (context.on_gpu()) {
      cuda = &context.cuda();
      on_gpu = cuda->prepare(p);
      return;
    }
    expect(p.a.type == DType::kFloat32, "[gemm] expected float32 on the CPU");
    try {
      prepare(context.onednn(), p);
    } catch (const dnnl::error& error) {
      fail<DeviceError>("[gemm] oneDNN refused m={} n={} k={} ({})", p.m(), p.n(), p.k(),
                        error.what());
    }
  }

  void prepare(OneDnn& onednn, const MatrixProduct& p) {
    const Descriptor a = described(p.a), b = described(p.b);
    const Descriptor c = described(p.c);
    const Descriptor bias = described({p.c.as<float>(), 1, p.n(), p.n()});
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (p.accumulate) {
      dnnl::post_ops post;
      post.append_sum(1.0F);
      attributes.set_post_ops(post);
    }
    const dnnl::matmul::desc product =
        p.bias != nullptr ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
    const dnnl::matmul::primitive_desc plan(product, attributes, onednn.engine);
    scratch = Buffer(plan.scratchpad_desc().get_size());
    std::vector<BoundPrimitive::Argument> arguments = {
        {DNNL_ARG_SRC, a, const_cast<void*>(p.a.data)},
        {DNNL_ARG_WEIGHTS, b, const_cast<void*>(p.b.data)},
        {DNNL_ARG_DST, c, p.c.data},
        {DNNL_ARG_SCRATCHPAD, plan.scratchpad_desc(), scratch.data()}};
    if (p.bias != nullptr) {
      arguments.push_back({DNNL_ARG_BIAS, bias, const_cast<void*>(p.bias)});
    }
    on_cpu = BoundPrimitive(onednn, dnnl::matmul(plan), arguments);
  }

  const CudaContext* cuda = nullptr;
  std::shared_ptr<const CudaContext::Product> on_gpu;
  Buffer scratch;
  BoundPrimitive on_cpu;
};

PreparedGemm::PreparedGemm() = default;
PreparedGemm::PreparedGemm(const Context& context, const MatrixProduct& product)
    : impl_(std::make_unique<Impl>(context, product)) {}
PreparedGemm::~PreparedGemm() = default;
PreparedGemm::PreparedGemm(PreparedGemm&&) noexcept = default;
PreparedGemm& PreparedGemm::operator=(PreparedGemm&&) noexcept = default;

void PreparedGemm::run() const {
  if (impl_->on_gpu != nullptr) return impl_->cuda->run(*impl_->on_gpu);
  impl_->on_cpu.run();
}

}  // namespace rk
