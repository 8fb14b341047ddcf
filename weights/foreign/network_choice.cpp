#include "weights/foreign/network_choice.h"

#include "engine/base/english.h"
#include "engine/base/lower_case.h"
#include "engine/base/printable.h"
#include "weights/foreign/resnet_names.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace rk {
namespace {

const std::string kEmbedding = "embedding.weight";

// Whether `words` occurs in `prefix` as whole words: "model_ema." holds "ema", "semantic_encoder."
// does not.
bool holds_words(std::string_view prefix, std::string_view words) {
  constexpr std::string_view kBetween = "./_";
  for (std::size_t at = prefix.find(words); at != std::string_view::npos;
       at = prefix.find(words, at + 1)) {
    const std::size_t end = at + words.size();
    if ((at == 0 || kBetween.find(prefix[at - 1]) != std::string_view::npos) &&
        (end == prefix.size() || kBetween.find(prefix[end]) != std::string_view::npos)) {
      return true;
    }
  }
  return false;
}

// Checkpoints of MMEngine hold the averaged weights under `state_dict` and the others under
// `ema_state_dict`, whose module alone counts `steps` (its EMAHook swaps the two while it saves).
constexpr std::string_view kSwapped = "ema_state_dict/";

// The preference of a network by its prefix; lower is better.
int rank_of(const std::string& prefix, bool swapped) {
  struct Rule {
    std::string_view words;
    int rank;
  };
  // The first that holds decides: "optimizer_state_dict" is no network's, "student_ema" averaged.
  constexpr std::array<Rule, 17> kRules = {{{"optim", 9},
                                            {"optimizer", 9},
                                            {"optimiser", 9},
                                            {"exp_avg", 9},
                                            {"grad", 9},
                                            {"grads", 9},
                                            {"gradient", 9},
                                            {"gradients", 9},
                                            {"momentum", 8},
                                            {"encoder_k", 7},
                                            {"ema", 0},
                                            {"swa", 0},
                                            {"student", 6},
                                            {"state_dict", 1},
                                            {"model", 2},
                                            {"encoder_q", 3},
                                            {"teacher", 4}}};
  constexpr int kOfOthers = 5;
  if (swapped && prefix.starts_with(kSwapped)) return kOfOthers;
  const std::string lower = lower_case(prefix);
  const auto* const rule =
      std::ranges::find_if(kRules, [&](const Rule& of) { return holds_words(lower, of.words); });
  return rule != kRules.end() ? rule->rank : kOfOthers;
}

// A naming scheme of tensors.
struct Dialect {
  const char* whose;
  std::vector<std::string> marks;          // ends of names that no other dialect has
  std::vector<std::string> further_marks;  // for files in which those are missing
  std::optional<std::string> (*rename)(const std::string&);  // into torchvision's
};
const std::array<Dialect, 3> kDialects = {
    {{"torchvision's names",
      {kOfResNet, kOfGoogLeNet, kOfInception},
      {"layer1.0.conv2.weight", "inception3a.branch1.bn.weight", "Mixed_5b.branch1x1.bn.weight"},
      [](const std::string& name) { return std::optional(name); }},
     // Whole models have the prefix `resnet.`, and the classifier outside it.
     {"the names of Hugging Face transformers",
      {"resnet.encoder.stages.0.layers.0.layer.0.convolution.weight",
       "encoder.stages.0.layers.0.layer.0.convolution.weight"},
      {"resnet.encoder.stages.0.layers.0.layer.1.convolution.weight",
       "encoder.stages.0.layers.0.layer.1.convolution.weight"},
      name_of_transformers},
     {"the names of NVIDIA's examples",
      {"layers.0.0.conv1.weight"},
      {"layers.0.0.conv2.weight"},
      name_of_nvidia}}};

// What stands before these marks in the file's names, the most preferred first.
std::vector<std::string> prefixes(const NamedTensors& tensors,
                                  const std::vector<std::string>& marks) {
  std::vector<std::string> found;
  for (const auto& [name, tensor] : tensors) {
    for (const std::string& mark : marks) {
      if (!name.ends_with(mark)) continue;
      const std::string prefix = name.substr(0, name.size() - mark.size());
      if (!prefix.empty() && prefix.back() != '.' && prefix.back() != '/') continue;
      found.push_back(prefix);
      break;
    }
  }
  const bool swapped = tensors.contains(std::string(kSwapped) + "steps");
  const auto order = [swapped](const std::string& prefix) {
    return std::pair(rank_of(prefix, swapped), prefix.size());
  };
  std::ranges::stable_sort(found, {}, order);
  return found;
}

// The prefix of the embedding layer of the network with `prefix`: `prefix` itself, or that of an
// enclosing module that holds both ("backbone.conv1.weight", "embedding.weight").
std::string embedding_prefix(const NamedTensors& tensors, const std::string& prefix) {
  std::string above = prefix;
  while (!tensors.contains(above + kEmbedding) && !above.empty()) {
    above.pop_back();
    above.resize(above.find_last_of("./") + 1);
  }
  return tensors.contains(above + kEmbedding) ? above : prefix;
}

// The networks of one dialect in a file, by the prefixes of their names.
struct FoundNetworks {
  const Dialect* dialect;
  std::vector<std::string> prefixes;
};

FoundNetworks find_networks(const TensorFile& file, const NamedTensors& tensors) {
  for (const auto marks : {&Dialect::marks, &Dialect::further_marks}) {
    for (const Dialect& dialect : kDialects) {
      std::vector<std::string> found = prefixes(tensors, dialect.*marks);
      if (!found.empty()) return {&dialect, std::move(found)};
    }
  }
  if (tensors.empty()) {
    refuse(file,
           fmt::format("holds no tensors by name{}; save model.state_dict()",
                       file.kind == TensorFile::Kind::kTorch ? " (arrays of numpy are none)" : ""));
  }
  std::vector<std::string> some;
  for (const StoredTensor& tensor : file.tensors) {
    if (some.size() < 3) some.push_back(printable(tensor.name));
  }
  refuse(file, fmt::format("holds {} ({}{}), but no network whose names are known; `convert {} "
                           "--list` shows all of them",
                           counted(file.tensors.size(), "tensor"), fmt::join(some, ", "),
                           file.tensors.size() > some.size() ? ", ..." : "", printable(file.path)));
}

// All tensors of the file, those of the network with this prefix by torchvision's names.
NamedTensors torchvision_names(const NamedTensors& tensors, const Dialect& dialect,
                               const std::string& prefix) {
  // Contrastive training replaces the classifier by a projection of its own.
  const bool projects = holds_words(prefix, "encoder_q") || holds_words(prefix, "encoder_k");
  const std::string beside = embedding_prefix(tensors, prefix);
  NamedTensors mine;
  for (const auto& [name, tensor] : tensors) {
    const std::string& front = name.starts_with(beside + "embedding.") ? beside : prefix;
    const std::string rest = name.starts_with(front) ? name.substr(front.size()) : "";
    const bool projection = projects && rest.starts_with("fc.");
    const bool of_it = !rest.empty() && !projection;
    mine.emplace(of_it ? dialect.rename(rest).value_or(rest) : "//" + name, tensor);
  }
  return mine;
}

}  // namespace

ChosenNetwork choose_network(const TensorFile& file, const std::string& arch) {
  // So many of the networks in a file are looked at, for which each is compared with all tensors.
  constexpr std::size_t kMostLookedAt = 32;
  NamedTensors tensors;
  for (const StoredTensor& tensor : file.tensors) tensors.emplace(tensor.name, &tensor);
  const auto [dialect, found] = find_networks(file, tensors);
  const auto named = [&, &of = *dialect](const std::string& prefix) {
    return torchvision_names(tensors, of, prefix);
  };
  std::size_t taken = 0;  // if none will do, the refusal is about the most preferred
  for (std::size_t i = 0; found.size() > 1 && i < std::min(found.size(), kMostLookedAt); ++i) {
    if (!is_whole_network(named(found[i]), arch)) continue;
    taken = i;
    break;
  }
  const std::string& prefix = found[taken];
  ChosenNetwork chosen;
  chosen.names = dialect->whose + (prefix.empty() ? "" : " behind " + in_quotes(prefix));
  chosen.tensors = named(prefix);
  if (found.size() > 1) {
    chosen.note = fmt::format("of {} networks in the file the one of '{}' was taken", found.size(),
                              printable(prefix));
    if (taken > 0) {
      chosen.note += fmt::format(", since that of '{}' is {}", printable(found[0]),
                                 arch.empty() ? "not whole or not known" : "no whole " + arch);
    }
  }
  return chosen;
}

}  // namespace rk
