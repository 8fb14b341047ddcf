#include "layers/onednn/convolution.h"

#include "engine/device/onednn.h"
#include "engine/device/onednn_versions.h"
#include "kernels/cpu/elementwise.h"
#include "layers/onednn/convolution_block.h"
#include "layers/onednn/image_desc.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace rk {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

constexpr const char* kName = "convolution";
constexpr auto kFloat = memory::data_type::f32;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;
// An accumulating input gradient is computed in slices of about this size: half of a typical
// level-2 cache, so that the addition reads each slice from cache.
constexpr std::size_t kSliceBytes = std::size_t{2} << 20;

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

memory::desc any(const memory::desc& desc) { return {onednn_dims(desc), kFloat, Tag::any}; }

// A pass's workspace: copies of tensors that it computes in another layout than they are stored in
// (null: the same layout), and the library's scratchpad.
struct Workspace {
  void* weight = nullptr;
  void* x = nullptr;
  void* y = nullptr;  // dy in backward
  void* scratchpad = nullptr;
};

void* take(Carver& from, std::size_t bytes) {
  return bytes > 0 ? from.take<std::byte>(static_cast<std::int64_t>(bytes)) : nullptr;
}

// The bytes of a copy in the layout that is computed in, if the tensor is stored in another.
std::size_t copy_bytes(const memory::desc& computed, const memory::desc& stored) {
  return computed == stored ? 0 : computed.get_size();
}

// Whether the library would write outside its scratchpad, and compute wrong numbers with several
// threads: in the weights' gradient of a strided 1 x 1 convolution over adjacent channels that are
// fewer than a block (its issue 6035, in all versions until 2026 at least).
bool errs_on_few_channels(const ConvolutionGeometry& g) {
  const Conv2dOptions& o = g.options;
  return g.order.kind == WeightOrder::Kind::kPlain && g.block == 0 &&
         g.x[3] < convolution_block() && o.kernel == std::array<std::int64_t, 2>{1, 1} &&
         (o.stride[0] > 1 || o.stride[1] > 1);
}

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

  Workspace in_forward, in_weights, in_data;  // the passes share one workspace

  EdgeUse use;  // of dx
  float* dx = nullptr;
  float* slice = nullptr;  // temporary for a gradient that accumulates or has another layout
  const float* dy = nullptr;

  // The block that the weights' gradient is computed in; 0: as x and y are for the other passes.
  std::int64_t weights_block = 0;

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
  memory::desc weights_x_desc() const {
    return weights_block > 0 ? image_desc(g.x, weights_block) : x_desc();
  }
  memory::desc weights_y_desc() const {
    return weights_block > 0 ? image_desc(g.y, weights_block) : y_desc();
  }

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

  dnnl::convolution_forward::primitive_desc forward_hint(const memory::desc& x,
                                                         const memory::desc& w,
                                                         const memory::desc& y) const {
    return onednn_plan<dnnl::convolution_forward>(onednn.engine, {},
                                                  dnnl::prop_kind::forward_training, kDirect, x, w,
                                                  y, stride(), padding(), padding());
  }

  dnnl::convolution_backward_data::primitive_desc make_data() const {
    const std::int64_t images = slice_images();
    const memory::desc xd = computed_x(images);
    // With three channels of x, this primitive exists for a plain dy; for dy in blocks there is
    // only the library's reference code, a hundred times slower.
    const memory::desc computed = computed_y(images);
    const memory::desc yd = g.order.kind == WeightOrder::Kind::kStem ? any(computed) : computed;
    const auto hint = forward_hint(xd, any(stored_weight), yd);
    return onednn_backward_plan<dnnl::convolution_backward_data>(
        onednn.engine, user_scratchpad(), hint, kDirect, xd, any(stored_weight), yd, stride(),
        padding(), padding());
  }

  bool moves_dx() const { return x_desc() != stored_x(g.x[0]); }

  static dnnl::primitive_attr user_scratchpad() {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attributes;
  }

  // Both return the bytes used.
  std::size_t carve(void* start, Workspace& pass, const memory::desc& x, const memory::desc& weight,
                    const memory::desc& y, const memory::desc& scratch) const {
    Carver pieces(start);
    pass.weight = take(pieces, copy_bytes(weight, stored_weight));
    pass.x = take(pieces, copy_bytes(x, stored_x(g.x[0])));
    pass.y = take(pieces, copy_bytes(y, stored_y(g.y[0])));
    pass.scratchpad = take(pieces, scratch.get_size());
    return pieces.used();
  }
  std::size_t carve_data(void* start) {
    Carver pieces(start);
    in_data.weight = take(pieces, copy_bytes(data_pd.weights_desc(), stored_weight));
    in_data.y = take(pieces, copy_bytes(data_pd.diff_dst_desc(), stored_y(slice_images())));
    in_data.scratchpad = take(pieces, data_pd.scratchpad_desc().get_size());
    const bool aside = use.accumulate || moves_dx();
    slice = static_cast<float*>(take(pieces, aside ? data_pd.diff_src_desc().get_size() : 0));
    return pieces.used();
  }

  // Where a pass reads a tensor: in `copy`, which the reorder fills, if there is one.
  void* read_from(const float* tensor, const memory::desc& stored, const memory::desc& computed,
                  void* copy, BoundPrimitive& reorder) const {
    auto* place = const_cast<float*>(tensor);
    if (copy == nullptr) return place;
    reorder = make_reorder(stored, place, computed, copy);
    return copy;
  }
  // Where a pass writes a tensor: to `copy`, which the reorder reads, if there is one.
  void* write_to(float* tensor, const memory::desc& stored, const memory::desc& computed,
                 void* copy, BoundPrimitive& reorder) const {
    if (copy == nullptr) return tensor;
    reorder = make_reorder(computed, copy, stored, tensor);
    return copy;
  }

  // add: adds to the destination's contents.
  BoundPrimitive make_reorder(const memory::desc& from, void* from_data, const memory::desc& to,
                              void* to_data, bool add = false) const {
    dnnl::primitive_attr attributes;
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

  dnnl::primitive_attr attributes = user_scratchpad();
  dnnl::post_ops post;
  if (wants.residual) post.append_binary(dnnl::algorithm::binary_add, y);
  if (wants.relu) append_relu(post);
  attributes.set_post_ops(post);
  const auto plan_forward = [&](const auto&... operands) {
    forward_pd = onednn_plan<dnnl::convolution_forward>(
        onednn.engine, attributes, kind, kDirect, operands..., stride(), padding(), padding());
  };
  if (wants.bias) {
    plan_forward(x, w, memory::desc({g.y[3]}, kFloat, Tag::x), y);
  } else {
    plan_forward(x, w, y);
  }
  if (!wants.backward) return;
  weights_block = errs_on_few_channels(g) ? convolution_block() : 0;
  const memory::desc wx = weights_x_desc(), wy = weights_y_desc();
  weights_pd = onednn_backward_plan<dnnl::convolution_backward_weights>(
      onednn.engine, user_scratchpad(), forward_hint(wx, w, wy), kDirect, wx, w, wy, stride(),
      padding(), padding());
  if (use.wanted) data_pd = make_data();
}

bool OneDnnConvolution::has_own_code(const Context& context,
                                     const ConvolutionGeometry& geometry) try {
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
} catch (const dnnl::error& error) {
  refused_by_onednn(kName, error);
}

void OneDnnConvolution::plan(const ConvolutionGeometry& geometry, const EdgeUse& dx) try {
  impl_->build(geometry, dx);
} catch (const dnnl::error& error) {
  refused_by_onednn(kName, error);
}

void OneDnnConvolution::carve(Carver& workspace) {
  Impl& m = *impl_;
  void* start = workspace.rest();
  std::size_t bytes = m.carve(start, m.in_forward, m.x_desc(), m.forward_pd.weights_desc(),
                              m.y_desc(), m.forward_pd.scratchpad_desc());
  if (m.wants.backward) {
    bytes = std::max(
        bytes, m.carve(start, m.in_weights, m.weights_x_desc(), m.weights_pd.diff_weights_desc(),
                       m.weights_y_desc(), m.weights_pd.scratchpad_desc()));
    if (m.use.wanted) bytes = std::max(bytes, m.carve_data(start));
  }
  take(workspace, bytes);
}

void OneDnnConvolution::bind_forward(const float* x, const float* w, const float* bias,
                                     const float* residual, float* y) try {
  Impl& m = *impl_;
  const Workspace& in = m.in_forward;
  const memory::desc wanted = m.forward_pd.weights_desc();
  void* weight = m.read_from(w, m.stored_weight, wanted, in.weight, m.forward_reorder);
  void* input = m.read_from(x, m.stored_x(m.g.x[0]), m.x_desc(), in.x, m.x_reorder);
  void* output = m.write_to(y, m.stored_y(m.g.y[0]), m.y_desc(), in.y, m.y_reorder);
  std::vector<BoundPrimitive::Argument> arguments = {
      {DNNL_ARG_SRC, m.x_desc(), input},
      {DNNL_ARG_WEIGHTS, wanted, weight},
      {DNNL_ARG_DST, m.y_desc(), output},
      {DNNL_ARG_SCRATCHPAD, m.forward_pd.scratchpad_desc(), in.scratchpad}};
  if (bias != nullptr) {
    arguments.push_back({DNNL_ARG_BIAS, m.forward_pd.bias_desc(), const_cast<float*>(bias)});
  }
  if (residual != nullptr) {
    arguments.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, m.y_desc(),
                         const_cast<float*>(residual)});
  }
  m.forward = BoundPrimitive(m.onednn, dnnl::convolution_forward(m.forward_pd), arguments);
} catch (const dnnl::error& error) {
  refused_by_onednn(kName, error);
}

void OneDnnConvolution::bind_backward(const float* x, const float* dy, const float* w, float* dw,
                                      float* dx) try {
  bind_backward_weights(x, dy, dw);
  impl_->dx = dx;
  impl_->dy = dy;
  if (dx != nullptr) bind_backward_data(dy, w, dx);
} catch (const dnnl::error& error) {
  refused_by_onednn(kName, error);
}

void OneDnnConvolution::bind_backward_weights(const float* x, const float* dy, float* dw) {
  Impl& m = *impl_;
  const Workspace& in = m.in_weights;
  const memory::desc made = m.weights_pd.diff_weights_desc();
  void* gradient = m.write_to(dw, m.stored_weight, made, in.weight, m.weights_reorder);
  const memory::desc xd = m.weights_x_desc(), yd = m.weights_y_desc();
  void* input = m.read_from(x, m.stored_x(m.g.x[0]), xd, in.x, m.weights_x_reorder);
  void* output_gradient = m.read_from(dy, m.stored_y(m.g.y[0]), yd, in.y, m.weights_dy_reorder);
  m.weights =
      BoundPrimitive(m.onednn, dnnl::convolution_backward_weights(m.weights_pd),
                     {{DNNL_ARG_SRC, xd, input},
                      {DNNL_ARG_DIFF_DST, yd, output_gradient},
                      {DNNL_ARG_DIFF_WEIGHTS, made, gradient},
                      {DNNL_ARG_SCRATCHPAD, m.weights_pd.scratchpad_desc(), in.scratchpad}});
}

void OneDnnConvolution::bind_backward_data(const float* dy, const float* w, float* dx) {
  Impl& m = *impl_;
  const Workspace& in = m.in_data;
  const auto& pd = m.data_pd;
  const std::int64_t images = m.slice_images();
  void* weight = m.read_from(w, m.stored_weight, pd.weights_desc(), in.weight, m.data_reorder);
  void* gradient = m.read_from(dy, m.stored_y(images), pd.diff_dst_desc(), in.y, m.dy_reorder);
  if (m.moves_dx()) {
    m.dx_reorder =
        m.make_reorder(pd.diff_src_desc(), m.slice, m.stored_x(images), dx, m.use.accumulate);
  }
  m.data =
      BoundPrimitive(m.onednn, dnnl::convolution_backward_data(pd),
                     {{DNNL_ARG_DIFF_DST, pd.diff_dst_desc(), gradient},
                      {DNNL_ARG_WEIGHTS, pd.weights_desc(), weight},
                      {DNNL_ARG_DIFF_SRC, pd.diff_src_desc(), m.slice != nullptr ? m.slice : dx},
                      {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc(), in.scratchpad}});
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
