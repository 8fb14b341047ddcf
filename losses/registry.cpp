#include "losses/registry.h"

#include "engine/base/error.h"
#include "engine/base/nearest.h"
#include "losses/auc/auc.h"
#include "losses/contrastive.h"
#include "losses/cuda/loss.h"
#include "losses/fastap.h"
#include "losses/histogram.h"
#include "losses/multi_similarity.h"
#include "losses/pnp.h"
#include "losses/proxy.h"
#include "losses/rambo.h"
#include "losses/rambo_scores.h"
#include "losses/recall_at_k.h"
#include "losses/smooth_ap.h"
#include "losses/sup_ap.h"
#include "losses/triplet.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace rk {
namespace {

// nullopt where the text is not one finite number as a whole.
std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::string range_text(const LossParameter& parameter) {
  if (!parameter.choices.empty()) return fmt::format("{}", fmt::join(parameter.choices, "|"));
  return fmt::format("{}{} to {}", parameter.integer ? "integer, " : "", parameter.low,
                     parameter.high);
}

void check_value(const std::string& loss, const LossParameter& parameter, const std::string& text) {
  const auto& choices = parameter.choices;
  if (!choices.empty()) {
    if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
      fail<UsageError>("{}: {}={} is not a choice; {}", loss, parameter.name, text,
                       suggestion(text, choices));
    }
    return;
  }
  const std::optional<double> value = parse_number(text);
  const bool fits = value && *value >= parameter.low && *value <= parameter.high &&
                    (!parameter.integer || *value == std::floor(*value));
  if (!fits) {
    fail<UsageError>("{}: {}={} cannot be; give {}", loss, parameter.name, text,
                     range_text(parameter));
  }
}

// Pieces of text between separators; an empty text has none.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
    if (text.empty()) pieces.push_back(text);  // a trailing separator leaves an empty piece
  }
  return pieces;
}

}  // namespace

const std::vector<LossEntry>& loss_registry() {
  static const std::vector<LossEntry> entries = {
      fastap_entry(),           smooth_ap_entry(),   rambo_recall_entry(),
      rambo_ap_entry(),         pnp_o_entry(),       pnp_iu_entry(),
      pnp_ib_entry(),           pnp_ds_entry(),      pnp_dq_entry(),
      auc_bh_entry(),           auc_ba_entry(),      wilcoxon_bh_entry(),
      triplet_bh_entry(),       triplet_ba_entry(),  nsl_entry(),
      proxy_anchor_entry(),     contrastive_entry(), histogram_entry(),
      multi_similarity_entry(), recall_at_k_entry(), sup_ap_entry(),
      rambo_map_entry(),        rambo_apc_entry(),   rambo_map_apc_entry(),
  };
  return entries;
}

LossParameter number_parameter(std::string name, std::string fallback, double low, double high,
                               std::string meaning) {
  return {.name = std::move(name),
          .fallback = std::move(fallback),
          .low = low,
          .high = high,
          .integer = false,
          .choices = {},
          .meaning = std::move(meaning)};
}

LossParameter integer_parameter(std::string name, int fallback, int low, int high,
                                std::string meaning) {
  return {.name = std::move(name),
          .fallback = std::to_string(fallback),
          .low = static_cast<double>(low),
          .high = static_cast<double>(high),
          .integer = true,
          .choices = {},
          .meaning = std::move(meaning)};
}

LossParameter choice_parameter(std::string name, std::vector<std::string> choices,
                               std::string meaning) {
  std::string first = choices.front();
  return {.name = std::move(name),
          .fallback = std::move(first),
          .low = 0,
          .high = 0,
          .integer = false,
          .choices = std::move(choices),
          .meaning = std::move(meaning)};
}

LossParameter compat_parameter(const std::string& official) {
  return choice_parameter("compat", {"paper", "official"}, "official: " + official);
}

double LossValues::number(const std::string& name) const { return *parse_number(text_.at(name)); }

int LossValues::integer(const std::string& name) const { return static_cast<int>(number(name)); }

bool LossValues::is(const std::string& name, std::string_view choice) const {
  return text_.at(name) == choice;
}

std::string LossSpec::text() const {
  std::string out = entry->name;
  char separator = ':';
  for (const LossParameter& parameter : entry->parameters) {
    out += fmt::format("{}{}={}", separator, parameter.name, values.text().at(parameter.name));
    separator = ',';
  }
  return out;
}

LossSpec parse_loss(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string name(text.substr(0, colon));
  const auto& entries = loss_registry();
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const LossEntry& entry) { return entry.name == name; });
  if (found == entries.end()) {
    std::vector<std::string> names;
    for (const LossEntry& entry : entries) names.push_back(entry.name);
    fail<UsageError>("{}: no such loss; {}", name, suggestion(name, names));
  }
  LossSpec spec;
  spec.entry = &*found;
  std::vector<std::string> known;
  for (const LossParameter& parameter : found->parameters) {
    spec.values.set(parameter.name, parameter.fallback);
    known.push_back(parameter.name);
  }
  std::vector<std::string> given;
  for (const std::string_view piece :
       split(colon == std::string_view::npos ? "" : text.substr(colon + 1), ',')) {
    const std::size_t equals = piece.find('=');
    const std::string key(piece.substr(0, equals));
    if (equals == std::string_view::npos || key.empty()) {
      fail<UsageError>("{}: '{}' is no parameter; write {}:key=value,key=value", name, piece, name);
    }
    const auto at = std::find(known.begin(), known.end(), key);
    if (at == known.end()) {
      fail<UsageError>("{}: no such parameter: {}; {}", name, key,
                       known.empty() ? "it has none" : suggestion(key, known));
    }
    if (std::find(given.begin(), given.end(), key) != given.end()) {
      fail<UsageError>("{}: {} is given twice; give it once", name, key);
    }
    given.push_back(key);
    const std::string value(piece.substr(equals + 1));
    check_value(name, found->parameters[static_cast<std::size_t>(at - known.begin())], value);
    spec.values.set(key, value);
  }
  return spec;
}

template <> std::unique_ptr<Loss<float>> make_loss(const LossSpec& spec) {
  return spec.entry->make_float(spec.values);
}

template <> std::unique_ptr<Loss<double>> make_loss(const LossSpec& spec) {
  return spec.entry->make_double(spec.values);
}

std::unique_ptr<DeviceLoss> make_device_loss(const CudaContext& cuda, const LossSpec& spec) {
  if (spec.entry->make_device == nullptr) {
    std::string has;
    for (const LossEntry& entry : loss_registry()) {
      if (entry.make_device != nullptr) has += (has.empty() ? "" : ", ") + entry.name;
    }
    fail<DeviceError>("{}: is not computed on a GPU as a whole ({} are); use --device cpu",
                      spec.entry->name, has.empty() ? "none" : has);
  }
  return spec.entry->make_device(cuda, spec.values);
}

std::string describe_loss(const LossEntry& entry) {
  std::string out = fmt::format("{}: {}\n  {}\n", entry.name, entry.summary, entry.paper);
  switch (entry.kind) {
    case LossKind::kEmbeddings:
      out +=
          "  reads /embeddings [N, D], /labels [N]; if there /identities [N], /memory_embeddings\n"
          "  [M, D], /memory_labels [M] and, with identities, /memory_identities [M]\n";
      break;
    case LossKind::kProxies:
      out += "  reads /embeddings [N, D], /labels [N], /proxies [C, D]; labels are rows of those\n";
      break;
    case LossKind::kScores: out += "  reads /scores and /targets, both [N, C]\n"; break;
  }
  if (!entry.parameters.empty()) out += "  parameters:\n";
  for (const LossParameter& parameter : entry.parameters) {
    out += fmt::format("    {:<10} {} ({}; default {})\n", parameter.name, parameter.meaning,
                       range_text(parameter), parameter.fallback);
  }
  return out;
}

}  // namespace rk
