#include "data/samplers/sampler.h"

#include "data/samplers/samplers.h"
#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/base/nearest.h"

#include <numeric>
#include <utility>

namespace rk {
namespace {

struct SamplerEntry {
  std::string_view name;
  std::vector<std::string> keys;
  std::string_view help;
  SamplerMaker* make;
};

const std::vector<SamplerEntry>& samplers() {
  static const std::vector<SamplerEntry> table{
      {"pk",
       {"k"},
       "pk[:k=N]: batch / k classes, k images of each (without k: per-class)",
       make_pk},
      {"category",
       {"per_pair", "k"},
       "category[:per_pair=10,k=0]: half a batch from each of two categories, all pairs of them "
       "in an epoch, classes whole (or k images of each)",
       make_category},
      {"random_classes",
       {},
       "random_classes: classes whole until the batch is full",
       make_random_classes},
      {"random", {}, "random: images in random order, for losses with proxies", make_random}};
  return table;
}

const SamplerEntry& entry_of(std::string_view name) {
  for (const SamplerEntry& entry : samplers()) {
    if (entry.name == name) return entry;
  }
  fail<UsageError>("'{}' is no sampler; {}", name, suggestion(name, sampler_names()));
}

}  // namespace

std::vector<std::int64_t> random_order(std::int64_t n, std::int64_t take, CounterRandom random) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::int64_t i = 0; i < take; ++i) {
    std::swap(order[at(i)], order[at(i + random.below(n - i))]);
  }
  return order;
}

std::vector<std::int64_t> PassOrder::part(std::int64_t epoch, std::int64_t pass, std::int64_t first,
                                          std::int64_t count) const {
  const std::lock_guard lock(mutex_);
  if (kept_ != std::pair(epoch, pass)) {
    order_ = random_order(
        n_, n_, CounterRandom(seed_, random_stream(use_, epoch), static_cast<std::uint64_t>(pass)));
    kept_ = {epoch, pass};
  }
  return {order_.begin() + first, order_.begin() + first + count};
}

void require_pairs(const Dataset& data) {
  for (std::size_t c = 0; c < data.members().size(); ++c) {
    const std::size_t images = data.members()[c].size();
    if (images >= 2) continue;
    fail<InputError>(
        "{}: class '{}' has {}, training needs two; add some, or leave such classes out "
        "with --data SPEC,min_images=2",
        data.name(), data.classes()[c].name, counted(images, "image"));
  }
}

void require_images(const Dataset& data, std::int64_t batch_size) {
  if (data.size() >= batch_size) return;
  fail<InputError>("{0}: a batch of {1} out of {2}; give --batch {3} or less", data.name(),
                   batch_size, counted(data.size(), "image"), data.size());
}

void require_countable(std::string_view sampler, std::int64_t batches, std::int64_t most) {
  if (batches <= most) return;
  fail<UsageError>(
      "{}: {} batches an epoch are more than it tells apart; give --batches {} or fewer", sampler,
      batches, most);
}

std::vector<std::string> sampler_names() {
  std::vector<std::string> names;
  for (const SamplerEntry& entry : samplers()) names.emplace_back(entry.name);
  return names;
}

std::string sampler_help() {
  std::string text;
  for (const SamplerEntry& entry : samplers()) text += fmt::format("\n{}", entry.help);
  return text;
}

DataSpec parse_sampler(std::string_view text) {
  const std::size_t colon = text.find(':');
  DataSpec spec{std::string(text.substr(0, colon)), "", {}};
  const SamplerEntry& entry = entry_of(spec.kind);
  if (colon != std::string_view::npos) {
    spec.options = parse_key_values(text.substr(colon + 1), spec.kind);
  }
  for (const auto& [key, value] : spec.options) {
    require_known(spec.kind, "no parameter '{}'", key, entry.keys);
  }
  return spec;
}

std::unique_ptr<Sampler> make_sampler(std::string_view text, const Dataset& data,
                                      std::int64_t batch_size, std::uint64_t seed,
                                      std::int64_t batches, std::int64_t parts) {
  const DataSpec spec = parse_sampler(text);
  if (batches < 0) fail<UsageError>("{} batches an epoch; use 1 or more", batches);
  return entry_of(spec.kind).make(spec, {data, batch_size, seed, batches, parts});
}

}  // namespace rk
