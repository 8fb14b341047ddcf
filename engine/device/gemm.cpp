#include "engine/device/gemm.h"

#include "engine/base/error.h"
#include "engine/device/buffer.h"
#include "engine/device/cuda/context.h"
#include "engine/device/onednn.h"
#include "engine/device/onednn_versions.h"

#include <new>

namespace rk {
namespace {

using Descriptor = dnnl::memory::desc;

Descriptor described(std::int64_t rows, std::int64_t columns, std::int64_t stride,
                     bool transposed = false) {
  constexpr auto kFloat = dnnl::memory::data_type::f32;
  using Dims = dnnl::memory::dims;
  if (transposed) return {{columns, rows}, kFloat, Dims{1, stride}};
  return {{rows, columns}, kFloat, Dims{stride, 1}};
}

// Whether a vector of the product has other numbers between its own: oneDNN 3.7 takes them for its
// own where it multiplies a matrix by a vector.
bool has_gapped_vector(const MatrixProduct<float>& product) {
  const auto gapped = [](const auto& matrix) { return matrix.columns == 1 && matrix.stride > 1; };
  return gapped(product.a) || gapped(product.b) || gapped(product.c);
}

void check(const MatrixProduct<float>& product) {
  const auto& [a, b, c, accumulate] = product;
  const std::int64_t a_rows = a.transposed ? a.columns : a.rows;
  const std::int64_t b_rows = b.transposed ? b.columns : b.rows;
  const std::int64_t b_columns = b.transposed ? b.rows : b.columns;
  expect(a_rows == c.rows && b_rows == product.k() && b_columns == c.columns,
         "[gemm] expected (m, k) (k, n) = (m, n), got ({}, {}) ({}, {}) = ({}, {})", a_rows,
         product.k(), b_rows, b_columns, c.rows, c.columns);
}

}  // namespace

void gemm(const Context& context, const MatrixProduct<float>& product) {
  check(product);
  const std::int64_t m = product.m(), n = product.n(), k = product.k();
  if (m == 0 || n == 0) return;
  const auto& [a, b, c, accumulate] = product;
  if (k == 0) {  // an empty sum, which the libraries refuse
    if (accumulate) return;
    for (std::int64_t i = 0; i < m; ++i) {
      context.clear(c.data + i * c.stride, static_cast<std::size_t>(n) * sizeof(float));
    }
    return;
  }
  if (context.on_gpu()) return context.cuda().gemm(product);
  const auto form = [](const Factor<float>& factor) { return factor.transposed ? 'T' : 'N'; };
  const dnnl_status_t status = dnnl_sgemm(form(a), form(b), m, n, k, 1.0F, a.data, a.stride, b.data,
                                          b.stride, accumulate ? 1.0F : 0.0F, c.data, c.stride);
  if (status == dnnl_out_of_memory) throw std::bad_alloc();
  if (status != dnnl_success) {
    fail<DeviceError>("[gemm] oneDNN refused m={} n={} k={} (status {})", m, n, k,
                      static_cast<int>(status));
  }
}

// gemm() where that needs no preparation; otherwise oneDNN's primitive, with its scratchpad.
struct PreparedGemm::Impl {
  Impl(const Context& context, const MatrixProduct<float>& p) {
    check(p);
    if (context.on_gpu() || has_gapped_vector(p)) {
      unprepared = &context;
      product = p;
      return;
    }
    try {
      prepare(context.onednn(), p);
    } catch (const dnnl::error& error) {
      refused_by_onednn(fmt::format("gemm m={} n={} k={}", p.m(), p.n(), p.k()), error);
    }
  }

  void prepare(OneDnn& onednn, const MatrixProduct<float>& p) {
    const auto& [a, b, c, accumulate] = p;
    const Descriptor first = described(a.rows, a.columns, a.stride, a.transposed);
    const Descriptor second = described(b.rows, b.columns, b.stride, b.transposed);
    const Descriptor result = described(c.rows, c.columns, c.stride);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (accumulate) {
      dnnl::post_ops post;
      post.append_sum(1.0F);
      attributes.set_post_ops(post);
    }
    const auto plan = onednn_plan<dnnl::matmul>(onednn.engine, attributes, first, second, result);
    scratch = Buffer(plan.scratchpad_desc().get_size());
    on_cpu = BoundPrimitive(onednn, dnnl::matmul(plan),
                            {{DNNL_ARG_SRC, first, const_cast<float*>(a.data)},
                             {DNNL_ARG_WEIGHTS, second, const_cast<float*>(b.data)},
                             {DNNL_ARG_DST, result, c.data},
                             {DNNL_ARG_SCRATCHPAD, plan.scratchpad_desc(), scratch.data()}});
  }

  const Context* unprepared = nullptr;
  MatrixProduct<float> product{};
  Buffer scratch;
  BoundPrimitive on_cpu;
};

PreparedGemm::PreparedGemm() = default;
PreparedGemm::PreparedGemm(const Context& context, const MatrixProduct<float>& product)
    : impl_(std::make_unique<Impl>(context, product)) {}
PreparedGemm::~PreparedGemm() = default;
PreparedGemm::PreparedGemm(PreparedGemm&&) noexcept = default;
PreparedGemm& PreparedGemm::operator=(PreparedGemm&&) noexcept = default;

void PreparedGemm::run() const {
  if (impl_->unprepared != nullptr) return gemm(*impl_->unprepared, impl_->product);
  impl_->on_cpu.run();
}

}  // namespace rk
