#include "layers/onednn/image_desc.h"

#include "engine/base/error.h"

namespace rk {

dnnl::memory::desc image_desc(const Shape& shape, std::int64_t block) {
  using Tag = dnnl::memory::format_tag;
  expect_image(shape, "onednn");
  Tag tag = Tag::nhwc;
  if (block == 16) {
    tag = Tag::nChw16c;
  } else if (block == 8) {
    tag = Tag::nChw8c;
  } else if (block == 1) {
    tag = Tag::nchw;
  } else {
    expect(block == shape[3], "[onednn] expected 1, 8, 16 or all channels side by side, got {}",
           block);
  }
  return {{shape[0], shape[3], shape[1], shape[2]}, dnnl::memory::data_type::f32, tag};
}

}  // namespace rk
