// Whole losses on a GPU against those on the CPU in double, on the same embeddings.
#include "engine/random.h"
#include "losses/hosted_loss.h"
#include "tests/cuda/gpu.h"

#include <cmath>
#include <numeric>

namespace rk {
namespace {

// Classes of 1 to 70 images around random centres, two rows that show one image, and memory columns
// among which some show images of the batch.
struct Batch {
  std::int64_t rows = 0, memory = 0, dim = 0;
  std::vector<float> embeddings, memory_embeddings;
  std::vector<std::int64_t> labels, identities, memory_labels, memory_identities;

  Batch(std::int64_t n, std::int64_t m, std::int64_t d) : rows(n), memory(m), dim(d) {
    for (std::int64_t i = 0; i < n + m; ++i) {
      const std::int64_t label = i % 3 == 0 ? 0 : i / 5;
      CounterRandom random(7, 0, static_cast<std::uint64_t>(i));
      CounterRandom centre(7, 1, static_cast<std::uint64_t>(label));
      std::vector<double> e;
      for (std::int64_t k = 0; k < d; ++k) e.push_back(random.normal() + centre.normal());
      const double length = std::sqrt(std::inner_product(e.begin(), e.end(), e.begin(), 0.0));
      auto& to = i < n ? embeddings : memory_embeddings;
      for (const double x : e) to.push_back(static_cast<float>(x / length));
      (i < n ? labels : memory_labels).push_back(label);
      (i < n ? identities : memory_identities).push_back(i < n ? i : i - (i % 2) * n);
    }
    if (n > 3) identities[3] = identities[0], labels[3] = labels[0];
  }

  template <class S> LossInput<S> input(const std::vector<S>& e, const std::vector<S>& m) const {
    LossInput<S> in;
    in.rows = rows;
    in.dim = dim;
    in.embeddings = e.data();
    in.labels = labels.data();
    in.identities = identities.data();
    in.memory = memory;
    in.memory_embeddings = m.data();
    in.memory_labels = memory_labels.data();
    in.memory_identities = memory_identities.data();
    return in;
  }
  LossShape shape() const { return {.rows = rows, .memory = memory, .dim = dim}; }
};

template <class S> struct Result {
  LossOutput<S> output;
  std::vector<S> grad;
};

template <class S> Result<S> run(Loss<S>& loss, const Batch& batch, const LossShape& shape) {
  const std::vector<S> e(batch.embeddings.begin(), batch.embeddings.end());
  const std::vector<S> m(batch.memory_embeddings.begin(), batch.memory_embeddings.end());
  Result<S> result;
  result.grad.assign(e.size(), static_cast<S>(NAN));
  result.output.grad = result.grad.data();
  const Context context(1);
  loss.plan(context, shape);
  loss.run(context, batch.input<S>(e, m), result.output);
  return result;
}

std::vector<const LossEntry*> on_device() {
  std::vector<const LossEntry*> list;
  for (const LossEntry& entry : loss_registry()) {
    if (entry.make_device != nullptr) list.push_back(&entry);
  }
  return list;
}

TEST(DeviceLosses, AreAllOfThoseOnEmbeddings) {
  for (const LossEntry& entry : loss_registry()) {
    if (entry.kind != LossKind::kEmbeddings) continue;
    EXPECT_NE(entry.make_device, nullptr) << entry.name;
  }
}

class CudaLosses : public OnGpu {};

TEST_F(CudaLosses, AgreeWithTheCpuInDouble) {
  for (const auto& [n, m, d] : {std::tuple{203, 0, 64}, {96, 131, 33}, {2, 0, 1}, {5, 3, 7}}) {
    const Batch batch(n, m, d);
    for (const LossEntry* entry : on_device()) {
      SCOPED_TRACE(fmt::format("{} {} {} {}", entry->name, n, m, d));
      const LossSpec spec = parse_loss(entry->name);
      const auto loss = make_hosted_loss(0, spec);
      // Planned for more than comes.
      const LossShape larger{.rows = n + 5, .memory = m + 9, .dim = d};
      const Result<float> got = run(*loss, batch, larger);
      const auto reference = make_loss<double>(spec);
      const Result<double> expected = run(*reference, batch, batch.shape());
      EXPECT_EQ(got.output.valid_queries, expected.output.valid_queries);
      EXPECT_NEAR(got.output.loss, expected.output.loss,
                  1e-4 * std::max(1.0, std::abs(expected.output.loss)));
      double largest = 0;
      for (const double g : expected.grad) largest = std::max(largest, std::abs(g));
      // Sigmoids at temperature 0.01 magnify what float leaves of a score by 100.
      for (std::size_t i = 0; i < got.grad.size(); ++i) {
        ASSERT_NEAR(got.grad[i], expected.grad[i], 2e-3 * largest + 1e-7) << i;
      }
    }
  }
}

TEST_F(CudaLosses, GiveTheSameBitsTwiceAndNothingWithoutPositives) {
  for (const LossEntry* entry : on_device()) {
    SCOPED_TRACE(entry->name);
    Batch batch(64, 32, 16);
    const auto loss = make_hosted_loss(0, parse_loss(entry->name));
    const Result<float> first = run(*loss, batch, batch.shape());
    EXPECT_EQ(run(*loss, batch, batch.shape()).grad, first.grad);
    std::iota(batch.labels.begin(), batch.labels.end(), 1000);
    const Result<float> none = run(*loss, batch, batch.shape());
    EXPECT_EQ(none.output.loss, 0.0);
    EXPECT_EQ(none.output.valid_queries, 0);
    EXPECT_EQ(none.grad, std::vector<float>(none.grad.size(), 0.0F));
  }
}

}  // namespace
}  // namespace rk
