#include "training/loss_bytes.h"

#include "losses/registry.h"

#include <algorithm>

namespace rk {
namespace {

// Rows that run at once: 8 blocks of 256 threads on each multiprocessor, of which no GPU has more
// than 160.
constexpr std::int64_t kRowsAtOnce = std::int64_t{8} * 160;
// Numbers of a row's scratch for each of its columns: RamboRow's, and a proxy's.
constexpr std::int64_t kNumbersOfRow = 9, kNumbersOfProxyRow = 1;
// Of a proxy at unit length, besides its coordinates: that length, in double.
constexpr std::int64_t kNumbersOfLength = 2;

}  // namespace

std::int64_t loss_bytes(const TrainerOptions& options, bool on_gpu) {
  const bool proxies = options.loss.entry->kind == LossKind::kProxies;
  const std::int64_t kept = options.batch * options.memory_batches;
  const std::int64_t columns = proxies ? options.classes : options.batch + kept;
  const std::int64_t at_once =
      on_gpu ? std::min(options.batch, kRowsAtOnce) * (proxies ? kNumbersOfProxyRow : kNumbersOfRow)
             : 0;
  const std::int64_t of_rows = options.batch * make_loss<float>(options.loss)->numbers_per_row();
  const std::int64_t rows = kept > 0 ? kept + options.batch : 0;
  const std::int64_t dim = options.model.dim;
  const std::int64_t unit_proxies = proxies ? options.classes * (dim + kNumbersOfLength) : 0;
  return std::int64_t{sizeof(float)} *
         ((options.batch + at_once) * columns + of_rows + rows * dim + unit_proxies);
}

}  // namespace rk
