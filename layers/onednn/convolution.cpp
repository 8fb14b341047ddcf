#include "layers/onednn/convolution.h"

#include "engine/base/round_up.h"
#include "engine/device/onednn.h"
#include "kernels/cpu/elementwise_cpu.h"
#include "layers/onednn/image_desc.h"

#include <algorithm>
#include <string_view>

namespace rk {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

constexpr auto kFloat = memory::data_type::f32;
// An accumulating input gradient is computed in slices of about this size: half of a typical
// level-2 cache, so that the addition reads each slice from cache.
constexpr std::size_t kSliceBytes = std::size_t{2} << 20;

std::size_t aligned(std::size_t bytes) { return round_up(bytes, Buffer::kAlignment); }

memory::desc weight_desc(const ConvolutionGeometry& g) {
  const Shape& s = g.weight;
  Tag tag = Tag::oihw;
  if (g.order.kind == WeightOrder::Kind::kBlocked) {
    tag = g.order.block == 16 ? Tag::OIhw16i16o : Tag::OIhw8i8o;
  } else if (g.order.kind == WeightOrder::Kind::kStem) {
    tag = g.order.block == 16 ? Tag::Ohwi16o : Tag::Ohwi8o;
  }
  return {{s[0], s[1], s[2], s[3]}, kFloat, tag};
}

memory::desc any(const memory::desc& desc) { return {desc.dims(), kFloat, Tag::any}; }

void* advance(void* base, std::size_t bytes) { return static_cast<std::byte*>(base) + bytes; }

}  // namespace

struct OneDnnConvolution::Impl {
  Impl(const Context& c, const Wants& what) : context(c), wants(what) {}

  const Context& context;
  ConvolutionGeometry g;
  Wants wants;
  OneDnn& onednn = context.onednn();

  memory::desc stored_weight;
  dnnl::convolution_forward::primitive_desc forward_pd;
  dnnl::convolution_backward_data::primitive_desc data_pd;
  dnnl::convolution_backward_weights::primitive_desc weights_pd;

  BoundPrimitive forward, forward_reorder, x_reorder, y_reorder;
  BoundPrimitive data, data_reorder, dy_reorder, dx_reorder;
  BoundPrimitive weights, weights_reorder, weights_x_reorder, weights_dy_reorder;

  EdgeUse use;  // of dx
  float* dx = nullptr;
  float* slice = nullptr;  // temporary for a gradient that accumulates or has another layout
  const float* dy = nullptr;

  // Builds the primitives for a geometry.
  void build(const ConvolutionGeometry& geometry, const EdgeUse& of_dx);

  memory::dims stride() const { return {g.options.stride[0], g.options.stride[1]}; }
  memory::dims padding() const { return {g.options.padding[0], g.options.padding[1]}; }

  // The layouts of x and y in memory, and those that the primitives compute in.
  memory::desc stored_x(std::int64_t images) const {
    return image_desc({images, g.x[1], g.x[2], g.x[3]}, g.x_block);
  }
  memory::desc stored_y(std::int64_t images) const {
    return image_desc({images, g.y[1], g.y[2], g.y[3]}, g.y_block);
  }
  memory::desc computed_x(std::int64_t images) const {
    return image_desc({images, g.x[1], g.x[2], g.x[3]}, g.block > 0 ? g.block : g.x_block);
  }
  memory::desc computed_y(std::int64_t images) const {
    return image_desc({images, g.y[1], g.y[2], g.y[3]}, g.block > 0 ? g.block : g.y_block);
  }
  memory::desc x_desc() const { return computed_x(g.x[0]); }
  memory::desc y_desc() const { return computed_y(g.y[0]); }
  // Bytes for a copy in the computed layout, if the tensor is stored in another.
  static std::size_t moved_bytes(const memory::desc& computed, const memory::desc& stored) {
    return computed == stored ? 0 : aligned(computed.get_size());
  }
  std::size_t moved_x_bytes() const { return moved_bytes(x_desc(), stored_x(g.x[0])); }
  std::size_t moved_y_bytes() const { return moved_bytes(y_desc(), stored_y(g.y[0])); }

  // The number of images whose gradient is computed at once: all of them or, if it accumulates, the
  // largest divisor of the batch that keeps a slice of dx small.
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
    const memory::desc xd = computed_x(images);
    // With three channels of x, this primitive exists for a plain dy; for dy in blocks there is
    // only the library's reference code, a hundred times slower.
    const memory::desc computed = computed_y(images);
    const memory::desc yd = g.order.kind == WeightOrder::Kind::kStem ? any(computed) : computed;
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

  std::size_t reordered_dy_bytes() const {
    return moved_bytes(data_pd.diff_dst_desc(), stored_y(slice_images()));
  }
  bool moves_dx() const { return moved_x_bytes() > 0; }
  std::size_t slice_bytes() const {
    return use.accumulate || moves_dx() ? data_pd.diff_src_desc().get_size() : 0;
  }

  static dnnl::primitive_attr user_scratchpad() {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attributes;
  }

  // Workspace: first the weights in a primitive's own order, if it differs from the stored one,
  // then dy if it must be reordered, then the scratchpad.
  std::size_t reordered_bytes(const memory::desc& wanted) const {
    return wanted == stored_weight ? 0 : aligned(wanted.get_size());
  }

  // add: adds to the destination's contents.
  BoundPrimitive make_reorder(const memory::desc& from, void* from_data, const memory::desc& to,
                              void* to_data, bool add = false) const {
    dnnl::primitive_attr attributes = user_scratchpad();
    if (add) {
      dnnl::post_ops post;
      post.append_sum(1.0F);
      attributes.set_post_ops(post);
    }
    const dnnl::reorder::primitive_desc pd(onednn.engine, from, onednn.engine, to, attributes);
    return {
        onednn, dnnl::reorder(pd), {{DNNL_ARG_FROM, from, from_data}, {DNNL_ARG_TO, to, to_data}}};
  }
};

OneDnnConvolution::OneDnnConvolution(const Context& context, const Wants& wants)
    : impl_(std::make_unique<Impl>(context, wants)) {}

OneDnnConvolution::~OneDnnConvolution() = default;

void OneDnnConvolution::Impl::build(const ConvolutionGeometry& geometry, const EdgeUse& of_dx) {
  g = geometry;
  stored_weight = weight_desc(geometry);
  use = of_dx;
  const memory::desc x = x_desc(), y = y_desc();
  const bool plain = g.order.kind == WeightOrder::Kind::kPlain;
  const memory::desc w = plain ? any(stored_weight) : stored_weight;
  const auto kind =
      wants.backward ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  const auto direct = dnnl::algorithm::convolution_direct;

  dnnl::primitive_attr attributes = user_scratchpad();
  dnnl::post_ops post;
  if (wants.residual) post.append_binary(dnnl::algorithm::binary_add, y);
  if (wants.relu) post.append_eltwise(1.0F, dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
  attributes.set_post_ops(post);
  if (wants.bias) {
    const memory::desc bias({g.y[3]}, kFloat, Tag::x);
    forward_pd = {
        {kind, direct, x, w, bias, y, stride(), padding(), padding()}, attributes, onednn.engine};
  } else {
    forward_pd = {
        {kind, direct, x, w, y, stride(), padding(), padding()}, attributes, onednn.engine};
  }
  if (!wants.backward) return;
  const dnnl::convolution_forward::primitive_desc hint(
      {dnnl::prop_kind::forward_training, direct, x, w, y, stride(), padding(), padding()},
      onednn.engine);
  weights_pd = {
      {direct, x, w, y, stride(), padding(), padding()}, user_scratchpad(), onednn.engine, hint};
  if (use.wanted) data_pd = make_data();
}

bool OneDnnConvolution::has_own_code(const Context& context, const ConvolutionGeometry& geometry) {
  Impl trial(context, {.backward = true});
  ConvolutionGeometry one = geometry;
  one.x = {1, geometry.x[1], geometry.x[2], geometry.x[3]};
  one.y = {1, geometry.y[1], geometry.y[2], geometry.y[3]};
  // The input of a first layer is pictures, whose gradient nobody wants.
  const bool wanted = geometry.order.kind != WeightOrder::Kind::kStem;
  trial.build(one, {.wanted = wanted});
  const auto own = [](const auto& pd) {
    return !std::string_view(pd.impl_info_str()).starts_with("ref");
  };
  return own(trial.forward_pd) && own(trial.weights_pd) && (!wanted || own(trial.data_pd));
}

std::size_t OneDnnConvolution::plan(const ConvolutionGeometry& geometry, const EdgeUse& dx) {
  Impl& m = *impl_;
  m.build(geometry, dx);
  const std::size_t moved = m.moved_x_bytes() + m.moved_y_bytes();
  std::size_t workspace = m.reordered_bytes(m.forward_pd.weights_desc()) + moved +
                          aligned(m.forward_pd.scratchpad_desc().get_size());
  if (!m.wants.backward) return workspace;
  workspace = std::max(workspace, m.reordered_bytes(m.weights_pd.diff_weights_desc()) + moved +
                                      aligned(m.weights_pd.scratchpad_desc().get_size()));
  if (!m.use.wanted) return workspace;
  return std::max(workspace, m.reordered_bytes(m.data_pd.weights_desc()) + m.reordered_dy_bytes() +
                                 aligned(m.data_pd.scratchpad_desc().get_size()) + m.slice_bytes());
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
  void* input = const_cast<float*>(x);
  void* output = y;
  void* rest = advance(workspace, reordered);
  if (m.moved_x_bytes() > 0) {
    m.x_reorder = m.make_reorder(m.stored_x(m.g.x[0]), input, m.x_desc(), rest);
    input = rest;
    rest = advance(rest, m.moved_x_bytes());
  }
  if (m.moved_y_bytes() > 0) {
    m.y_reorder = m.make_reorder(m.y_desc(), rest, m.stored_y(m.g.y[0]), output);
    output = rest;
    rest = advance(rest, m.moved_y_bytes());
  }
  std::vector<BoundPrimitive::Argument> arguments = {
      {DNNL_ARG_SRC, m.x_desc(), input},
      {DNNL_ARG_WEIGHTS, wanted, weight},
      {DNNL_ARG_DST, m.y_desc(), output},
      {DNNL_ARG_SCRATCHPAD, m.forward_pd.scratchpad_desc(), rest}};
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
  bind_backward_weights(x, dy, dw, workspace);
  impl_->dx = dx;
  impl_->dy = dy;
  if (dx != nullptr) bind_backward_data(dy, w, dx, workspace);
}

void OneDnnConvolution::bind_backward_weights(const float* x, const float* dy, float* dw,
                                              void* workspace) {
  Impl& m = *impl_;
  const memory::desc made = m.weights_pd.diff_weights_desc();
  const std::size_t reordered = m.reordered_bytes(made);
  void* gradient = dw;
  if (reordered > 0) {
    m.weights_reorder = m.make_reorder(made, workspace, m.stored_weight, dw);
    gradient = workspace;
  }
  void* input = const_cast<float*>(x);
  void* output_gradient = const_cast<float*>(dy);
  void* rest = advance(workspace, reordered);
  if (m.moved_x_bytes() > 0) {
    m.weights_x_reorder = m.make_reorder(m.stored_x(m.g.x[0]), input, m.x_desc(), rest);
    input = rest;
    rest = advance(rest, m.moved_x_bytes());
  }
  if (m.moved_y_bytes() > 0) {
    m.weights_dy_reorder = m.make_reorder(m.stored_y(m.g.y[0]), output_gradient, m.y_desc(), rest);
    output_gradient = rest;
    rest = advance(rest, m.moved_y_bytes());
  }
  m.weights = BoundPrimitive(m.onednn, dnnl::convolution_backward_weights(m.weights_pd),
                             {{DNNL_ARG_SRC, m.x_desc(), input},
                              {DNNL_ARG_DIFF_DST, m.y_desc(), output_gradient},
                              {DNNL_ARG_DIFF_WEIGHTS, made, gradient},
                              {DNNL_ARG_SCRATCHPAD, m.weights_pd.scratchpad_desc(), rest}});
}

void OneDnnConvolution::bind_backward_data(const float* dy, const float* w, float* dx,
                                           void* workspace) {
  Impl& m = *impl_;
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
    m.dy_reorder =
        m.make_reorder(m.stored_y(m.slice_images()), gradient, pd.diff_dst_desc(), there);
    gradient = there;
  }
  void* scratchpad = advance(workspace, reordered + reordered_dy);
  m.slice = static_cast<float*>(advance(scratchpad, aligned(pd.scratchpad_desc().get_size())));
  if (m.moves_dx()) {
    m.dx_reorder = m.make_reorder(pd.diff_src_desc(), m.slice, m.stored_x(m.slice_images()), dx,
                                  m.use.accumulate);
  }
  m.data =
      BoundPrimitive(m.onednn, dnnl::convolution_backward_data(pd),
                     {{DNNL_ARG_DIFF_DST, pd.diff_dst_desc(), gradient},
                      {DNNL_ARG_WEIGHTS, wanted, weight},
                      {DNNL_ARG_DIFF_SRC, pd.diff_src_desc(), m.slice_bytes() > 0 ? m.slice : dx},
                      {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc(), scratchpad}});
}

void OneDnnConvolution::forward() {
  if (impl_->forward_reorder) impl_->forward_reorder.run();
  if (impl_->x_reorder) impl_->x_reorder.run();
  impl_->forward.run();
  if (impl_->y_reorder) impl_->y_reorder.run();
}

void OneDnnConvolution::backward_data() {
  Impl& m = *impl_;
  if (!m.data) return;
  if (m.data_reorder) m.data_reorder.run();
  if (!m.use.accumulate) {
    if (m.dy_reorder) m.dy_reorder.run();
    m.data.run();
    if (m.dx_reorder) m.dx_reorder.run();
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
    float* target = m.dx + s * x_slice;
    if (m.dx_reorder) {
      m.dx_reorder.move_argument(1, target);
      m.dx_reorder.run();
    } else {
      elementwise_cpu::copy(m.context.threads(), x_slice, m.slice, target, /*accumulate=*/true);
    }
  }
}

void OneDnnConvolution::backward_weights() {
  if (impl_->weights_x_reorder) impl_->weights_x_reorder.run();
  if (impl_->weights_dy_reorder) impl_->weights_dy_reorder.run();
  impl_->weights.run();
  if (impl_->weights_reorder) impl_->weights_reorder.run();
}

void OneDnnConvolution::forward_floor() { impl_->forward.run(); }

void OneDnnConvolution::backward_floor() {
  Impl& m = *impl_;
  // The input gradient first: backward_data() left its reordered weights in the workspace, and the
  // weight gradient's scratchpad would overwrite them.
  if (m.data) {
    const std::int64_t runs = m.g.x[0] / m.slice_images();
    for (std::int64_t s = 0; s < runs; ++s) m.data.run();
  }
  m.weights.run();
}

}  // namespace rk
