// A loss over a batch of embeddings: its value and its exact gradient, on the CPU or on a GPU.
//
//   auto loss = make_loss<float>("smooth_ap:tau=0.01");            // losses/registry.h
//   loss->allocate(context, {.rows = 128, .dim = 512});            // the only call that does
//   loss->prepare(context, input);             // every batch: labels, from the host
//   loss->launch(context, input, gradients);   // the device's work; asynchronous on a GPU
//   LossValue value = loss->result(context);   // waits
//
// To avoid waiting, call fetch() after launch(), and take() once the device's work is done; the
// next batch may be prepared and launched in between.
//
// Embeddings [N, D] are used unchanged (already of unit length); the gradient is that of the
// formula as a function of S = E E^T. The gallery of query i is the batch without i, then the
// memory's columns, minus every column with the query's image_id. P_i and N_i are its items with
// the same and with another label. With no valid query the loss and all gradients are exactly 0.
// Labels are arbitrary int64; nsl and proxy_anchor require 0 <= label < classes, the row of the
// proxies.
//
// Non-finite input: on the CPU launch() checks first and throws an InputError that names the first
// row that holds NaN, infinity or a number beyond 1e10 (the outputs are then undefined). On a GPU,
// where launch() does not wait, a non-finite embedding makes the loss and the gradient non-finite;
// of losses of scores, which only rank them, finite scores are required there.
// For proxies that a loss cannot take, take() or result() throws InputError at the latest.
//
// Double is for checks and tests, on the CPU only.
#pragma once

#include "engine/device/context.h"

#include <cstdint>

namespace rk {

// The largest sizes a batch will have; smaller ones are fine.
struct LossShape {
  std::int64_t rows = 0;     // N
  std::int64_t memory = 0;   // M, columns without gradient
  std::int64_t dim = 0;      // D
  std::int64_t classes = 0;  // C, rows of the proxies, or columns of the scores
};

// Sizes, labels, image_ids and targets are on the host; prepare() reads them before it returns.
// Arrays of S are in the context's memory; the work that launch() starts reads them.
template <class S> struct LossInput {
  std::int64_t rows = 0;
  std::int64_t dim = 0;
  const S* embeddings = nullptr;            // [N, D]
  const std::int64_t* labels = nullptr;     // [N]
  const std::int64_t* image_ids = nullptr;  // [N], image numbers >= 0, one label each; or null
  std::int64_t memory = 0;
  const S* memory_embeddings = nullptr;            // [M, D]
  const std::int64_t* memory_labels = nullptr;     // [M]
  const std::int64_t* memory_image_ids = nullptr;  // [M]; given if and only if `image_ids` is
  std::int64_t classes = 0;
  const S* proxies = nullptr;             // [C, D], any length: the loss normalises them
  const S* scores = nullptr;              // [N, C], losses on scores: these replace embeddings
  const std::uint8_t* targets = nullptr;  // [N, C], 0 or 1: these replace labels
};

// In the context's memory.
template <class S> struct LossGradients {
  S* grad = nullptr;          // [N, D], overwritten ([N, C] for losses on scores)
  S* grad_proxies = nullptr;  // [C, D], overwritten by losses with proxies, else unchanged
};

struct LossValue {
  double loss = 0;
  std::int64_t valid_queries = 0;
};

template <class S> struct LossOutput : LossValue, LossGradients<S> {};

template <class S> class Loss {
 public:
  virtual ~Loss() = default;

  // Reserves everything a batch needs; call it again when a size grows or the number of threads
  // changes.
  virtual void allocate(const Context& context, const LossShape& shape) = 0;

  virtual void prepare(const Context& context, const LossInput<S>& input) = 0;

  // Computes loss and gradients of the prepared batch. Allocates nothing of its own. May be
  // captured (engine/device/cuda/graph.h) and replayed for other prepared batches of the same
  // sizes; losses of scores only for batches with the same targets.
  void launch(const Context& context, const LossInput<S>& input, const LossGradients<S>& gradients);

  // Called after launch(), for its batch; at most two values may be fetched and not yet taken.
  virtual void fetch(const Context& context) = 0;
  // The earliest fetched value that was not taken yet.
  virtual LossValue take() = 0;
  LossValue result(const Context& context) {
    fetch(context);
    context.synchronize();
    return take();
  }
  // Where in the context's memory launch() writes the loss.
  virtual const double* device_ptr() const = 0;

  // prepare(), launch() and result(); gradients go to the context's memory.
  void run(const Context& context, const LossInput<S>& input, LossOutput<S>& output) {
    prepare(context, input);
    launch(context, input, output);
    static_cast<LossValue&>(output) = result(context);
  }

  // Bytes reserved by allocate(); on a GPU, of the GPU's memory.
  virtual std::int64_t bytes() const = 0;

  // How many numbers of type S it keeps for each row of a batch beside the row's scores, if their
  // number is a parameter's, such as that of bins.
  virtual std::int64_t numbers_per_row() const { return 0; }

 protected:
  virtual void compute(const Context& context, const LossInput<S>& input,
                       const LossGradients<S>& gradients) = 0;
};

}  // namespace rk
