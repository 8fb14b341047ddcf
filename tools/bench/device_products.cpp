#include "tools/bench/device_products.h"

#include "engine/device/cuda/buffer.h"
#include "engine/device/cuda/context.h"
#include "engine/device/cuda/timer.h"
#include "retrieval/passes/gpu_score_pass.h"

#include <algorithm>
#include <vector>

namespace rk {

double device_products_ms(const CudaContext& cuda, std::int64_t queries, std::int64_t gallery,
                          std::int64_t dim) {
  const ScoreTileShape shape = device_tile_shape(queries, gallery);
  // Varied numbers, like embeddings, since products of zeros would run faster.
  std::vector<float> values(static_cast<std::size_t>(std::max(shape.rows, shape.columns) * dim));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i * 2654435761U % 1000) / 1000.0F - 0.5F;
  }
  const auto rows = DeviceBuffer::copy_of(values);
  const auto tile = DeviceBuffer::of<float>(shape.rows * shape.columns);
  const Factor<float> columns{rows.as<float>(), shape.columns, dim, dim};
  const MatrixProduct<float> product{
      .a = {rows.as<float>(), shape.rows, dim, dim},
      .b = transposed(columns),
      .c = {tile.as<float>(), shape.rows, shape.columns, shape.columns}};
  DeviceTimer timer(cuda);
  timer.start();
  for (std::int64_t q = 0; q < queries; q += shape.rows) {
    for (std::int64_t g = 0; g < gallery; g += shape.columns) cuda.gemm(product);
  }
  return timer.stop();
}

}  // namespace rk
