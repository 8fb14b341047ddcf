#include "training/loss_bytes.h"

namespace rk {

std::int64_t loss_bytes(const TrainerOptions& options, bool on_gpu) {
  const bool proxies = options.loss.entry->kind == LossKind::kProxies;
  const std::int64_t kept = options.batch * options.memory_batches;
  const std::int64_t columns = proxies ? options.classes : options.batch + kept;
  const std::int64_t matrices = on_gpu ? 3 : 1;
  const std::int64_t rows = kept > 0 ? kept + options.batch : 0;
  return std::int64_t{sizeof(float)} *
         (matrices * options.batch * columns + rows * options.model.dim);
}

}  // namespace rk
