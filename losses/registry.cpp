#include "losses/registry.h"

#include "engine/base/error.h"
#include "engine/base/lower_case.h"
#include "engine/base/nearest.h"
#include "engine/base/number_in.h"
#include "losses/auc/auc.h"
#include "losses/entries.h"
#include "losses/scores/rambo_scores.h"

#include <algorithm>

namespace rk {
namespace {

// The pieces of text between separators; none if the text is empty.
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

// Knows what other libraries call a loss, and that they end all their names alike.
std::string loss_advice(const std::string& name, const std::vector<std::string>& names) {
  for (const LossEntry& entry : loss_registry()) {
    for (const std::string& other : entry.other_names) {
      const bool same = edit_distance(name, other) == 0 || edit_distance(name + "loss", other) == 0;
      if (same) return fmt::format("did you mean {}?", entry.name);
    }
  }
  constexpr std::string_view kEnding = "loss";
  const bool ends = name.size() > kEnding.size() && lower_case(name).ends_with(kEnding);
  return suggestion(ends ? name.substr(0, name.size() - kEnding.size()) : name, names);
}

bool holds(const LossValues& values, std::string_view setting) {
  const std::size_t equals = setting.find('=');
  return values.number(std::string(setting.substr(0, equals))) ==
         number_in<double>(setting.substr(equals + 1));
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
    // smooth_ap,tau=0.01: a parameter behind another sign than the colon.
    const std::size_t sign = name.find_first_of(",= ");
    if (sign != std::string::npos && std::ranges::count(names, name.substr(0, sign)) > 0) {
      fail<UsageError>("{}: parameters stand behind a colon: {}:{}", text, name.substr(0, sign),
                       text.substr(sign + 1));
    }
    fail<UsageError>("{}: no such loss; {}", name.empty() ? "''" : name, loss_advice(name, names));
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
    require_known(name, "no such parameter: {}", key, known);
    if (std::find(given.begin(), given.end(), key) != given.end()) {
      fail<UsageError>("{}: {} is given twice; give it once", name, key);
    }
    given.push_back(key);
    const std::string value(piece.substr(equals + 1));
    check_value(name, *std::ranges::find(found->parameters, key, &LossParameter::name), value);
    spec.values.set(key, value);
  }
  for (const LossParameter& parameter : found->parameters) {
    const bool changed = spec.values.text().at(parameter.name) != parameter.fallback;
    if (!changed || parameter.unless.empty() || !holds(spec.values, parameter.unless)) continue;
    spec.without_effect.push_back(
        fmt::format("{}: has no effect with {}", parameter.name, parameter.unless));
  }
  return spec;
}

template <> std::unique_ptr<Loss<float>> make_loss(const LossSpec& spec) {
  return spec.entry->make_float(spec.values);
}

template <> std::unique_ptr<Loss<double>> make_loss(const LossSpec& spec) {
  return spec.entry->make_double(spec.values);
}

std::string describe_loss(const LossEntry& entry) {
  std::string out = fmt::format("{}: {}\n  {}\n", entry.name, entry.summary, entry.paper);
  switch (entry.kind) {
    case LossKind::kEmbeddings:
      out +=
          "  reads /embeddings [N, D], /labels [N]; if there /identities [N], /memory_embeddings\n"
          "  [M, D], /memory_labels [M] and, with /identities, /memory_identities [M]: rows of "
          "one\n"
          "  picture, by its number there, are no candidates of each other\n";
      break;
    case LossKind::kProxies:
      out += "  reads /embeddings [N, D], /labels [N], /proxies [C, D]; labels are rows of those\n";
      break;
    case LossKind::kScores: out += "  reads /scores and /targets, both [N, C]\n"; break;
  }
  if (!entry.parameters.empty()) out += "  parameters:\n";
  for (const LossParameter& parameter : entry.parameters) {
    out += fmt::format("    {:<10} {} ({}; default {}{}{})\n", parameter.name, parameter.meaning,
                       range_text(parameter), parameter.fallback,
                       parameter.unless.empty() ? "" : "; no effect with ", parameter.unless);
  }
  return out;
}

}  // namespace rk
