#include "layers/onednn/convolution.h"

#include "engine/device/onednn.h"
#include "kernels/cpu/elementwise_cpu.h"
#include "layers/onednn/image_desc.h"

#include <algorithm>

namespace rk {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

constexpr auto kFloat = memory::data_type::f32;
// An accumulating input gradient is made in slices of about this size: half of a typical level-2
// cache, so that the addition behind it reads the slice from there.
constexpr std::size_t kSliceBytes = std::size_t{2} << 20;

std::size_t aligned(std::size_t bytes) {
  return (bytes + Buffer::kAlignment - 1) / Buffer::kAlignment * Buffer::kAlignment;
}

memory::desc weight_desc(const ConvolutionGeometry& g) {
  const Shape s = g.weight_shape();
  Tag tag = Tag::oihw;
  if (g.order.kind == WeightOrder::Kind::kBlocked) {
    tag = g.order.width == 16 ? Tag::OIhw16i16o : Tag::OIhw8i8o;
  } else if (g.order.kind == WeightOrder::Kind::kStem) {
    tag = g.order.width == 16 ? Tag::Ohwi16o : Tag::Ohwi8o;
  }
  return {{s[0], s[1], s[2], s[3]}, kFloat, tag};
}

memory::desc any(const memory::desc& desc) { return {desc.dims(), kFloat, Tag::any}; }

void* advance(void* base, std::size_t bytes) { return static_cast<std::byte*>(base) + bytes; }

}  // namespace

struct OneDnnConvolution::Impl {
  Impl(const Context& c, const ConvolutionGeometry& geometry, const Wants& what)
      : context(c), g(geometry), wants(what) {}

  const Context& context;
  ConvolutionGeometry g;
  Wants wants;
  OneDnn& onednn = context.onednn();

  memory::desc stored_weight = weight_desc(g);
  dnnl::convolution_forward::primitive_desc forward_pd;
  dnnl::convolution_backward_data::primitive_desc data_pd;
  dnnl::convolution_backward_weights::primitive_desc weights_pd;

  BoundPrimitive forward, forward_reorder;
  BoundPrimitive data, data_reorder, dy_reorder;
  BoundPrimitive weights, weights_reorder;

  EdgeUse use;  // of dx
  float* dx = nullptr;
  float* slice = nullptr;  // where an accumulating gradient is made
  const float* dy = nullptr;

  memory::dims stride() const { return {g.options.stride[0], g.options.stride[1]}; }
  memory::dims padding() const { return {g.options.padding[0], g.options.padding[1]}; }
  memory::desc x_desc() const { return image_desc(g.x, g.x_width); }
  memory::desc y_desc() const { return image_desc(g.y, g.y_width); }

  // How many images' gradient is made at once: all of them, or where it accumulates the largest
  // number that divides the batch and keeps a slice of dx small.
  std::int64_t slice_images() const {
    const std::int64_t batch = g.x[0];
    if (!use.accumulate) return batch;
    const auto image = static_cast<std::size_t>(g.x.elements() / batch) * sizeof(float);
    std::int64_t images =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(kSliceBytes / image), 1, batch);
    while (batch % images != 0) --images;
    return images;
  }

  dnnl::convolution_backward_data::primitive_desc make_data() const {
    const std::int64_t images = slice_images();
    const Shape x{images, g.x[1], g.x[2], g.x[3]}, y{images, g.y[1], g.y[2], g.y[3]};
    const memory::desc xd = image_desc(x, g.x_width);
    // With three channels of x this primitive exists for a plain dy; in blocks there is only the
    // library's reference, a hundred times slower.
    const memory::desc stored = image_desc(y, g.y_width);
    const memory::desc yd = g.order.kind == WeightOrder::Kind::kStem ? any(stored) : stored;
    const dnnl::primitive_attr attributes = user_scratchpad();
    const dnnl::convolution_forward::primitive_desc hint(
        {dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, xd,
         any(stored_weight), yd, stride(), padding(), padding()},
        onednn.engine);
    return {{dnnl::algorithm::convolution_direct, xd, any(stored_weight), yd, stride(), padding(),
             padding()},
            attributes,
            onednn.engine,
            hint};
  }

  memory::desc stored_dy() const {
    return image_desc({slice_images(), g.y[1], g.y[2], g.y[3]}, g.y_width);
  }
  std::size_t reordered_dy_bytes() const {
    const memory::desc wanted = data_pd.diff_dst_desc();
    return wanted == stored_dy() ? 0 : aligned(wanted.get_size());
  }

  static dnnl::primitive_attr user_scratchpad() {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attributes;
  }

  // Weights in a primitive's own order, where it differs from the stored one, go to the start of
  // the workspace, then dy if it must be reordered; the scratchpad follows.
  std::size_t reordered_bytes(const memory::desc& wanted) const {
    return wanted == stored_weight ? 0 : aligned(wanted.get_size());
  }

  BoundPrimitive make_reorder(const memory::desc& from, void* from_data, const memory::desc& to,
                              void* to_data) const {
    const dnnl::reorder::primitive_desc pd(onednn.engine, from, onednn.engine, to,
                                           user_scratchpad());
    return {
        onednn, dnnl::reorder(pd), {{DNNL_ARG_FROM, from, from_data}, {DNNL_ARG_TO, to, to_data}}};
  }
};

OneDnnConvolution::OneDnnConvolution(const Context& context, const ConvolutionGeometry& geometry,
                                     const Wants& wants)
    : impl_(std::make_unique<Impl>(context, geometry, wants)) {}

OneDnnConvolution::~OneDnnConvolution() = default;

std::size_t OneDnnConvolution::plan(const EdgeUse& dx) {
  Impl& m = *impl_;
  m.use = dx;
  const memory::desc x = m.x_desc(), y = m.y_desc();
  const bool plain = m.g.order.kind == WeightOrder::Kind::kPlain;
  const memory::desc w = plain ? any(m.stored_weight) : m.stored_weight;
  const auto kind =
      m.wants.backward ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  const auto direct = dnnl::algorithm::convolution_direct;

  dnnl::primitive_attr attributes = Impl::user_scratchpad();
  dnnl::post_ops post;
  if (m.wants.residual) post.append_binary(dnnl::algorithm::binary_add, y);
  if (m.wants.relu) post.append_eltwise(1.0F, dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
  attributes.set_post_ops(post);
  if (m.wants.bias) {
    const memory::desc bias({m.g.y[3]}, kFloat, Tag::x);
    m.forward_pd = {{kind, direct, x, w, bias, y, m.stride(), m.padding(), m.padding()},
                    attributes,
                    m.onednn.engine};
  } else {
    m.forward_pd = {
        {kind, direct, x, w, y, m.stride(), m.padding(), m.padding()}, attributes, m.onednn.engine};
  }
  std::size_t workspace = m.reordered_bytes(m.forward_pd.weights_desc()) +
                          aligned(m.forward_pd.scratchpad_desc().get_size());
  if (!m.wants.backward) return workspace;

  const dnnl::convolution_forward::primitive_desc hint(
      {dnnl::prop_kind::forward_training, direct, x, w, y, m.stride(), m.padding(), m.padding()},
      m.onednn.engine);
  m.weights_pd = {{direct, x, w, y, m.stride(), m.padding(), m.padding()},
                  Impl::user_scratchpad(),
                  m.onednn.engine,
                  hint};
  workspace = std::max(workspace, m.reordered_bytes(m.weights_pd.diff_weights_desc()) +
                                      aligned(m.weights_pd.scratchpad_desc().get_size()));
  if (!m.use.wanted) return workspace;

  m.data_pd = m.make_data();
  return std::max(workspace, m.reordered_bytes(m.data_pd.weights_desc()) + m.reordered_dy_bytes() +
                                 aligned(m.data_pd.scratchpad_desc().get_size()) +
                                 (m.use.accumulate ? m.data_pd.diff_src_desc().get_size() : 0));
}

void OneDnnConvolution::bind_forward(const float* x, const float* w, const float* bias,
                                     const float* residual, float* y, void* workspace) {
  Impl& m = *impl_;
  const memory::desc wanted = m.forward_pd.weights_desc();
  const std::size_t reordered = m.reordered_bytes(wanted);
  void* weight = const_cast<float*>(w);
  if (reordered > 0) {
    m.forward_reorder = m.make_reorder(m.stored_weight, weight, wanted, workspace);
    weight = workspace;
  }
  std::vector<BoundPrimitive::Argument> arguments = {
      {DNNL_ARG_SRC, m.x_desc(), const_cast<float*>(x)},
      {DNNL_ARG_WEIGHTS, wanted, weight},
      {DNNL_ARG_DST, m.y_desc(), y},
      {DNNL_ARG_SCRATCHPAD, m.forward_pd.scratchpad_desc(), advance(workspace, reordered)}};
  if (bias != nullptr) {
    arguments.push_back({DNNL_ARG_BIAS, m.forward_pd.bias_desc(), const_cast<float*>(bias)});
  }
  if (residual != nullptr) {
    arguments.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, m.y_desc(),
                         const_cast<float*>(residual)});
  }
  m.forward = BoundPrimitive(m.onednn, dnnl::convolution_forward(m.forward_pd), arguments);
}

void OneDnnConvolution::bind_backward(const float* x, const float* dy, const float* w, float* dw,
                                      float* dx, void* workspace) {
  Impl& m = *impl_;
  {
    const memory::desc made = m.weights_pd.diff_weights_desc();
    const std::size_t reordered = m.reordered_bytes(made);
    void* gradient = dw;
    if (reordered > 0) {
      m.weights_reorder = m.make_reorder(made, workspace, m.stored_weight, dw);
      gradient = workspace;
    }
    m.weights = BoundPrimitive(
        m.onednn, dnnl::convolution_backward_weights(m.weights_pd),
        {{DNNL_ARG_SRC, m.x_desc(), const_cast<float*>(x)},
         {DNNL_ARG_DIFF_DST, m.y_desc(), const_cast<float*>(dy)},
         {DNNL_ARG_DIFF_WEIGHTS, made, gradient},
         {DNNL_ARG_SCRATCHPAD, m.weights_pd.scratchpad_desc(), advance(workspace, reordered)}});
  }
  m.dx = dx;
  m.dy = dy;
  if (dx == nullptr) return;
  const auto& pd = m.data_pd;
  const memory::desc wanted = pd.weights_desc();
  const std::size_t reordered = m.reordered_bytes(wanted);
  void* weight = const_cast<float*>(w);
  if (reordered > 0) {
    m.data_reorder = m.make_reorder(m.stored_weight, weight, wanted, workspace);
    weight = workspace;
  }
  void* gradient = const_cast<float*>(dy);
  const std::size_t reordered_dy = m.reordered_dy_bytes();
  if (reordered_dy > 0) {
    void* there = advance(workspace, reordered);
    m.dy_reorder = m.make_reorder(m.stored_dy(), gradient, pd.diff_dst_desc(), there);
    gradient = there;
  }
  void* scratchpad = advance(workspace, reordered + reordered_dy);
  m.slice = static_cast<float*>(advance(scratchpad, aligned(pd.scratchpad_desc().get_size())));
  m.data = BoundPrimitive(m.onednn, dnnl::convolution_backward_data(pd),
                          {{DNNL_ARG_DIFF_DST, pd.diff_dst_desc(), gradient},
                           {DNNL_ARG_WEIGHTS, wanted, weight},
                           {DNNL_ARG_DIFF_SRC, pd.diff_src_desc(), m.use.accumulate ? m.slice : dx},
                           {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc(), scratchpad}});
}

void OneDnnConvolution::forward() {
  if (impl_->forward_reorder) impl_->forward_reorder.run();
  impl_->forward.run();
}

void OneDnnConvolution::backward_data() {
  Impl& m = *impl_;
  if (!m.data) return;
  if (m.data_reorder) m.data_reorder.run();
  if (!m.use.accumulate) {
    if (m.dy_reorder) m.dy_reorder.run();
    m.data.run();
    return;
  }
  const std::int64_t batch = m.g.x[0], images = m.slice_images();
  const std::int64_t x_slice = m.g.x.elements() / batch * images;
  const std::int64_t y_slice = m.g.y.elements() / batch * images;
  for (std::int64_t s = 0; s < batch / images; ++s) {
    auto* gradient = const_cast<float*>(m.dy + s * y_slice);
    if (m.dy_reorder) {
      m.dy_reorder.move_argument(0, gradient);
      m.dy_reorder.run();
    } else {
      m.data.move_argument(0, gradient);
    }
    m.data.run();
    elementwise_cpu::copy(m.context.threads(), x_slice, m.slice, m.dx + s * x_slice, true);
  }
}

void OneDnnConvolution::backward_weights() {
  impl_->weights.run();
  if (impl_->weights_reorder) impl_->weights_reorder.run();
}

void OneDnnConvolution::forward_floor() { impl_->forward.run(); }

void OneDnnConvolution::backward_floor() {
  Impl& m = *impl_;
  // The input gradient first: backward_data() left its reordered weights in the workspace, where
  // the weight gradient's scratchpad goes.
  if (m.data) {
    const std::int64_t runs = m.g.x[0] / m.slice_images();
    for (std::int64_t s = 0; s < runs; ++s) m.data.run();
  }
  m.weights.run();
}

}  // namespace rk
