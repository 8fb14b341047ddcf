#include "engine/device/tile_product.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/base/random.h"
#include "engine/device/onednn.h"
#include "engine/device/onednn_versions.h"

#include <algorithm>
#include <cstring>
#include <vector>

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace rk {
namespace {

using Tag = dnnl::memory::format_tag;
using Descriptor = dnnl::memory::desc;
constexpr auto kFloat = dnnl::memory::data_type::f32;

// While one lives, oneDNN plans for and computes with the calling thread alone; with several it
// would split `depth` among them.
class OneThread {
 public:
#if defined(_OPENMP)
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }

 private:
  int before_;
#endif
};

}  // namespace

// The state of one thread: oneDNN's memory objects hold the pointers of a call.
struct TileProduct::Lane {
  Lane(const dnnl::engine& engine, const dnnl::matmul::primitive_desc& plan,
       const dnnl::reorder::primitive_desc& packing, const Descriptor& b_plain)
      : stream(engine),
        a(plan.src_desc(), engine, nullptr),
        b(plan.weights_desc(), engine, nullptr),
        b_rows(b_plain, engine, nullptr),
        c(plan.dst_desc(), engine, nullptr),
        scratch_bytes(
            std::max(plan.scratchpad_desc().get_size(), packing.scratchpad_desc().get_size()) +
            Buffer::kAlignment),
        scratch(plan.scratchpad_desc(), engine, scratch_bytes.data()),
        packing_scratch(packing.scratchpad_desc(), engine, scratch_bytes.data()) {}

  dnnl::stream stream;
  dnnl::memory a, b, b_rows, c;
  Buffer scratch_bytes;
  dnnl::memory scratch, packing_scratch;
};

struct TileProduct::State {
  dnnl::matmul product;
  dnnl::reorder packing;
  std::vector<Lane> lanes;
};

TileProduct::TileProduct(const Context& context, std::int64_t rows, std::int64_t columns,
                         std::int64_t depth, int members)
    : rows_(rows), columns_(columns), depth_(depth), state_(std::make_unique<State>()) {
  // Padding inside the packed layout would have to be zeroed at every use.
  expect(
      rows > 0 && columns > 0 && columns % 64 == 0 && depth > 0 && depth % 16 == 0 && members > 0,
      "[tile_product] expected columns in steps of 64 and depth in steps of 16, got {} x {} x {}",
      rows, columns, depth);
  try {
    [[maybe_unused]] const OneThread alone;
    const dnnl::engine& engine = context.onednn().engine;
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const Descriptor a({rows, depth}, kFloat, Tag::ab);
    const Descriptor b({depth, columns}, kFloat, Tag::any);
    const Descriptor b_rows({depth, columns}, kFloat, Tag::ba);
    const Descriptor c({rows, columns}, kFloat, Tag::ab);
    const auto plan = onednn_plan<dnnl::matmul>(engine, attributes, a, b, c);
    const dnnl::reorder::primitive_desc packing(engine, b_rows, engine, plan.weights_desc(),
                                                attributes);
    state_->product = dnnl::matmul(plan);
    state_->packing = dnnl::reorder(packing);
    for (int i = 0; i < members; ++i) state_->lanes.emplace_back(engine, plan, packing, b_rows);
    const std::size_t bytes = plan.weights_desc().get_size();
    packed_bytes_ = round_up(bytes, Buffer::kAlignment);
  } catch (const dnnl::error& error) {
    refused_by_onednn(fmt::format("tile_product {} x {} x {}", rows, columns, depth), error);
  }
}

TileProduct::~TileProduct() = default;

void TileProduct::pack(int member, const float* b, void* packed) const try {
  [[maybe_unused]] const OneThread alone;
  Lane& lane = state_->lanes[at(member)];
  lane.b_rows.set_data_handle(const_cast<float*>(b));
  lane.b.set_data_handle(packed);
  state_->packing.execute(lane.stream, {{DNNL_ARG_FROM, lane.b_rows},
                                        {DNNL_ARG_TO, lane.b},
                                        {DNNL_ARG_SCRATCHPAD, lane.packing_scratch}});
} catch (const dnnl::error& error) {
  refused_by_onednn("tile_product", error);
}

void TileProduct::run(int member, const float* a, const void* packed, float* c) const try {
  [[maybe_unused]] const OneThread alone;
  Lane& lane = state_->lanes[at(member)];
  lane.a.set_data_handle(const_cast<float*>(a));
  lane.b.set_data_handle(const_cast<void*>(packed));
  lane.c.set_data_handle(c);
  state_->product.execute(lane.stream, {{DNNL_ARG_SRC, lane.a},
                                        {DNNL_ARG_WEIGHTS, lane.b},
                                        {DNNL_ARG_DST, lane.c},
                                        {DNNL_ARG_SCRATCHPAD, lane.scratch}});
} catch (const dnnl::error& error) {
  refused_by_onednn("tile_product", error);
}

bool TileProduct::position_independent() const {
  const auto depth = static_cast<std::size_t>(depth_);
  std::vector<float> x(depth), y(depth);
  CounterRandom random(0, 0, 0);
  for (std::size_t i = 0; i < depth; ++i) {
    x[i] = static_cast<float>(random.uniform(-1, 1));
    y[i] = static_cast<float>(random.uniform(-1, 1));
  }
  const Buffer a = Buffer::of<float>(rows_ * depth_);
  const Buffer b = Buffer::of<float>(columns_ * depth_);
  const Buffer c = Buffer::of<float>(rows_ * columns_);
  const Buffer packed(packed_bytes_);
  float first = 0;
  for (const bool swapped : {false, true}) {
    const std::vector<float>& left = swapped ? y : x;
    const std::vector<float>& right = swapped ? x : y;
    for (std::int64_t i = 0; i < rows_; ++i) {
      std::memcpy(a.as<float>() + i * depth_, left.data(), depth * sizeof(float));
    }
    for (std::int64_t i = 0; i < columns_; ++i) {
      std::memcpy(b.as<float>() + i * depth_, right.data(), depth * sizeof(float));
    }
    pack(0, b.as<float>(), packed.data());
    run(0, a.as<float>(), packed.data(), c.as<float>());
    if (!swapped) first = c.as<float>()[0];
    for (std::int64_t i = 0; i < rows_ * columns_; ++i) {
      if (c.as<float>()[i] != first) return false;
    }
  }
  return true;
}

}  // namespace rk
