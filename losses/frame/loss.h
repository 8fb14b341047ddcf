// A loss over a batch of embeddings: one call yields the value and the exact gradient.
//
//   auto loss = make_loss<float>("smooth_ap:tau=0.01");            // losses/registry.h
//   loss->plan(context, {.rows = 128, .memory = 0, .dim = 512});   // the only call that allocates
//   loss->run(context, input, output);                             // every step
//
// Embeddings [N, D] are taken as they are (already of unit length); the gradient is that of the
// formula as a function of S = E E^T. The gallery of query i is the batch without i, then the
// memory's columns, minus every column with the query's identity. P_i and N_i are its items with
// the same and with another label. With no valid query the loss and all gradients are exactly 0.
// Labels are arbitrary int64; nsl and proxy_anchor want 0 <= label < classes, the row of the
// proxies. Errors: InputError naming the first row that holds NaN, infinity or a number beyond 1e10
// (the outputs are then undefined).
#pragma once

#include "engine/device/context.h"

#include <cstdint>

namespace rk {

// The largest sizes run() will be given; smaller batches are fine.
struct LossShape {
  std::int64_t rows = 0;     // N
  std::int64_t memory = 0;   // M, columns without gradient
  std::int64_t dim = 0;      // D
  std::int64_t classes = 0;  // C, rows of the proxies, or columns of the scores
};

template <class S> struct LossInput {
  std::int64_t rows = 0;
  std::int64_t dim = 0;
  const S* embeddings = nullptr;             // [N, D]
  const std::int64_t* labels = nullptr;      // [N]
  const std::int64_t* identities = nullptr;  // [N], which image a row shows, >= 0; or null
  std::int64_t memory = 0;
  const S* memory_embeddings = nullptr;             // [M, D]
  const std::int64_t* memory_labels = nullptr;      // [M]
  const std::int64_t* memory_identities = nullptr;  // [M]; used where `identities` is given too
  std::int64_t classes = 0;
  const S* proxies = nullptr;             // [C, D], any length: the loss normalises them
  const S* scores = nullptr;              // [N, C], rambo_map and rambo_apc, instead of
  const std::uint8_t* targets = nullptr;  // [N, C], 0 or 1     embeddings and labels
};

template <class S> struct LossOutput {
  double loss = 0;
  std::int64_t valid_queries = 0;
  S* grad = nullptr;          // [N, D], overwritten ([N, C] for losses on scores)
  S* grad_proxies = nullptr;  // [C, D], overwritten by losses with proxies, else left alone
};

template <class S> class Loss {
 public:
  virtual ~Loss() = default;

  // Reserves everything run() needs; call it again when a size grows or the number of threads
  // changes.
  virtual void plan(const Context& context, const LossShape& shape) = 0;

  // Fills loss, valid_queries and the gradients. Allocates nothing of its own.
  virtual void run(const Context& context, const LossInput<S>& input, LossOutput<S>& output) = 0;

  // Bytes reserved by plan().
  virtual std::int64_t bytes() const = 0;
};

}  // namespace rk
