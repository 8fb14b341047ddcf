#include "engine/device/gemm.h"

#include "engine/base/error.h"
#include "engine/device/buffer.h"
#include "engine/device/cuda/context.h"
#include "engine/device/onednn.h"

#include <new>

namespace rk {
namespace {

using Descriptor = dnnl::memory::desc;

Descriptor matrix(std::int64_t rows, std::int64_t columns, std::int64_t stride, Op op) {
  const dnnl::memory::dims strides =
      op == Op::kTranspose ? dnnl::memory::dims{1, stride} : dnnl::memory::dims{stride, 1};
  return {{rows, columns}, dnnl::memory::data_type::f32, strides};
}

}  // namespace

void gemm(const Context& context, Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k,
          float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
          float beta, float* c, std::int64_t ldc) {
  if (m == 0 || n == 0) return;
  if (context.on_gpu()) {
    return context.cuda().gemm(op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  }
  if (k == 0) {  // an empty sum, which oneDNN refuses
    for (std::int64_t i = 0; i < m; ++i) {
      for (float* x = c + i * ldc; x < c + i * ldc + n; ++x) *x = beta == 0 ? 0.0F : beta * *x;
    }
    return;
  }
  const dnnl_status_t status = dnnl_sgemm(static_cast<char>(op_a), static_cast<char>(op_b), m, n, k,
                                          alpha, a, lda, b, ldb, beta, c, ldc);
  if (status == dnnl_out_of_memory) throw std::bad_alloc();
  if (status != dnnl_success) {
    fail<DeviceError>("[gemm] oneDNN refused m={} n={} k={} (status {})", m, n, k,
                      static_cast<int>(status));
  }
}

// On a GPU the product that its context prepared; on the CPU oneDNN's, with its scratchpad.
struct PreparedGemm::Impl {
  Impl(const Context& context, const GemmShape& s, const GemmPlaces& places) {
    if (context.on_gpu()) {
      cuda = &context.cuda();
      on_gpu = cuda->prepare(s, places);
      return;
    }
    expect(s.in == DType::kFloat32 && s.out == DType::kFloat32,
           "[gemm] expected float32 on the CPU");
    try {
      prepare(context.onednn(), s, places);
    } catch (const dnnl::error& error) {
      fail<DeviceError>("[gemm] oneDNN refused m={} n={} k={} ({})", s.m, s.n, s.k, error.what());
    }
  }

  void prepare(OneDnn& onednn, const GemmShape& s, const GemmPlaces& places) {
    const Descriptor a = matrix(s.m, s.k, s.lda, s.op_a), b = matrix(s.k, s.n, s.ldb, s.op_b);
    const Descriptor c = matrix(s.m, s.n, s.ldc, Op::kNone);
    const Descriptor bias = matrix(1, s.n, s.n, Op::kNone);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (s.accumulate) {
      dnnl::post_ops post;
      post.append_sum(1.0F);
      attributes.set_post_ops(post);
    }
    const dnnl::matmul::desc product =
        places.bias != nullptr ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
    const dnnl::matmul::primitive_desc plan(product, attributes, onednn.engine);
    scratch = Buffer(plan.scratchpad_desc().get_size());
    std::vector<BoundPrimitive::Argument> arguments = {
        {DNNL_ARG_SRC, a, const_cast<void*>(places.a)},
        {DNNL_ARG_WEIGHTS, b, const_cast<void*>(places.b)},
        {DNNL_ARG_DST, c, places.c},
        {DNNL_ARG_SCRATCHPAD, plan.scratchpad_desc(), scratch.data()}};
    if (places.bias != nullptr) {
      arguments.push_back({DNNL_ARG_BIAS, bias, const_cast<void*>(places.bias)});
    }
    on_cpu = BoundPrimitive(onednn, dnnl::matmul(plan), arguments);
  }

  const CudaContext* cuda = nullptr;
  std::shared_ptr<const CudaContext::Product> on_gpu;
  Buffer scratch;
  BoundPrimitive on_cpu;
};

PreparedGemm::PreparedGemm() = default;
PreparedGemm::PreparedGemm(const Context& context, const GemmShape& shape, const GemmPlaces& places)
    : impl_(std::make_unique<Impl>(context, shape, places)) {}
PreparedGemm::~PreparedGemm() = default;
PreparedGemm::PreparedGemm(PreparedGemm&&) noexcept = default;
PreparedGemm& PreparedGemm::operator=(PreparedGemm&&) noexcept = default;

void PreparedGemm::run() const {
  if (impl_->on_gpu != nullptr) return impl_->cuda->run(*impl_->on_gpu);
  impl_->on_cpu.run();
}

}  // namespace rk
