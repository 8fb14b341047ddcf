#include "tools/train/train_description.h"

#include "data/sources/known_classes.h"
#include "engine/base/english.h"
#include "tools/train/settings/train_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rk {
namespace {

constexpr double kMebibyte = 1 << 20;

std::int64_t share(const TrainParts& parts) { return parts.settings.batch / parts.processes; }

// Whether every batch has one class only, with a loss that compares images with one another.
bool batches_are_one_class(const TrainSettings& s) {
  return s.sampler == "pk" && s.batch == s.per_class && s.memory == 0 &&
         takes_memory(parse_loss(s.loss).entry->kind);
}

std::string batches_line(const TrainParts& parts) {
  const TrainSettings& s = parts.settings;
  const std::string of =
      s.sampler == "pk"
          ? fmt::format("{} x {}", counted(s.batch / s.per_class, "class"), s.per_class)
          : fmt::format("{}, sampler {}", counted(s.batch, "image"), s.sampler);
  const std::int64_t batches = parts.sampler.batches_per_epoch();
  return fmt::format("data: {}, {}: {}; {} an epoch of {}", s.data, parts.data.part(),
                     counts_text(parts.data), counted(batches, "batch"), of);
}

// The expected share of images in a randomly drawn batch that have another image of their class
// among the `beside` others of the batch, all images being equally likely.
double share_with_positive(const Dataset& data, std::int64_t beside) {
  const auto others = static_cast<double>(data.size() - 1);
  double sum = 0;
  for (const auto& images : data.members()) {
    const auto count = static_cast<double>(images.size());
    sum += count * (1 - std::pow(1 - (count - 1) / others, static_cast<double>(beside)));
  }
  return sum / static_cast<double>(data.size());
}

// Empty if the sampler suits the loss.
std::string sampler_line(const TrainParts& parts) {
  const TrainSettings& s = parts.settings;
  const LossSpec loss = parse_loss(s.loss);
  if (parse_sampler(s.sampler).kind != "random" || loss.entry->kind == LossKind::kProxies ||
      parts.data.size() < 2) {
    return "";
  }
  constexpr double kFew = 0.5;
  const double share = share_with_positive(parts.data, (s.memory + 1) * s.batch - 1);
  if (share >= kFew) return "";
  return fmt::format(
      "sampler random: about {:.0f} % of a batch's images have another of their class there, and "
      "{} "
      "learns from no others; --sampler pk puts --per-class images of a class together",
      100 * share, loss.entry->name);
}

// The number of held-out classes that are also trained on, or were, by name. What --data itself
// holds out is no part of what this run trains on.
std::int64_t shared_classes(const TrainParts& parts) {
  std::vector<std::string> names = parts.class_names;
  if (parts.settings.test_data.empty()) {
    const std::vector<std::string> own = parts.data.class_names();
    const std::set<std::string> of_data(own.begin(), own.end());
    std::erase_if(names, [&](const std::string& name) { return of_data.contains(name); });
  }
  return KnownClasses(names).count(*parts.held_out);
}

std::string held_out_line(const TrainParts& parts) {
  const TrainSettings& s = parts.settings;
  const std::string& part = parts.held_out->part();
  const bool own = s.test_data.empty();
  return fmt::format(
      "held out: {}{}: {}; the best epoch is chosen on these{}", own ? "" : s.test_data + ", ",
      part, counts_text(*parts.held_out, shared_classes(parts) == 0 ? "other class" : "class"),
      part == "split test" ? ", which flatters its figures there: a split val (or "
                             ",val_classes=0.2) leaves test alone"
                           : "");
}

// Empty if no held-out class is trained on.
std::string trained_on_line(const TrainParts& parts) {
  if (parts.held_out->identity() == parts.data.identity()) {
    return "held out: these are the images that are trained on, so that its metrics say nothing of "
           "classes that are new, nor does the best epoch; give others with --test-data";
  }
  const std::int64_t shared = shared_classes(parts);
  if (shared == 0) return "";
  return fmt::format(
      "held out: {} of these {} {} trained on, too (by name{}), which flatters its metrics; give "
      "classes of their own with --test-data",
      shared, counted(parts.held_out->classes().size(), "class"), shared == 1 ? "is" : "are",
      parts.class_names.size() > parts.data.class_names().size()
          ? "; here or before, where --weights or --resume come from"
          : "");
}

// The images that are evaluated in addition to the held-out ones.
std::string training_sample_line(const TrainParts& parts) {
  return fmt::format(
      "evaluated beside them each epoch: {} of training (--eval-train {}); compare their figures "
      "over the epochs, not with those of the held-out images, among which it is harder or easier "
      "to find the right one",
      counts_text(*parts.train_sample), parts.settings.eval_train);
}

std::string loss_line(const TrainParts& parts) {
  const TrainSettings& s = parts.settings;
  std::string line = fmt::format("loss: {}", s.loss);
  if (s.memory > 0) {
    line += fmt::format("; up to {} of the last {} beside the batch",
                        counted(s.memory * s.batch, "embedding"), counted(s.memory, "batch"));
  }
  if (parse_loss(s.loss).entry->kind == LossKind::kProxies) {
    line += fmt::format("; {} at {:g} times the rate",
                        counted(parts.data.classes().size(), "proxy"), s.proxy_rate);
  }
  return line;
}

std::string processes_line(const TrainParts& parts) {
  return fmt::format("processes: {}, {} of a batch each; the loss sees all {}{}", parts.processes,
                     counted(share(parts), "image"), parts.settings.batch,
                     parts.settings.bn == "train"
                         ? "; batch norm sees each part by itself (--bn frozen: as the whole batch)"
                         : "");
}

std::string chunk_line(const TrainParts& parts) {
  const TrainSettings& s = parts.settings;
  return fmt::format(
      "chunks: {} of {}, so that activations are those of {}, not of {}{}", share(parts) / s.chunk,
      counted(s.chunk, "image"), counted(s.chunk, "image"), share(parts),
      s.bn == "train" ? "; batch norm sees a chunk at a time (--bn frozen: as the whole batch)"
                      : "");
}

std::string memory_line(const TrainParts& parts) {
  const TrainSettings& s = parts.settings;
  auto groups = parts.trainer.reserved();
  const LoadingBytes& loading = parts.loading;
  groups.emplace_back("evaluation",
                      parts.evaluation_bytes + static_cast<std::size_t>(loading.evaluation_ring));
  groups.emplace_back("loader", static_cast<std::size_t>(loading.ring + loading.pictures));
  // A checkpoint and the HDF5 library's image that it is copied from.
  if (!parts.trainer.program().on_gpu()) {
    groups.emplace_back("saving", 2 * parts.trainer.state_bytes());
  }
  std::string of;
  double total = 0;
  for (const auto& [name, bytes] : groups) {
    if (bytes == 0) continue;
    of += fmt::format("{}{} {:.1f}", of.empty() ? "" : ", ", name,
                      static_cast<double>(bytes) / kMebibyte);
    total += static_cast<double>(bytes) / kMebibyte;
  }
  return fmt::format("memory in MiB{}: {:.1f}, and up to {} for decoded images ({})",
                     parts.processes > 1 ? ", of each process" : "", total, s.cache, of);
}

}  // namespace

std::vector<std::string> describe_training(const TrainParts& parts) {
  const TrainSettings& s = parts.settings;
  const ModelDescription model = model_description(s);
  std::vector<std::string> lines;
  lines.push_back(fmt::format(
      "network: {}, {} pooling, {} numbers, {:.2f} million parameters, batch norm {}", model.arch,
      model.pool, model.dim, static_cast<double>(parts.trainer.network_parameters()) * 1e-6, s.bn));
  lines.push_back(batches_line(parts));
  if (parts.data.is_one_class()) {
    lines.push_back(fmt::format(
        "{}: all of it is one class, so that there is nothing to tell apart and the loss teaches "
        "nothing; give images of other classes too",
        s.data));
  } else if (batches_are_one_class(s)) {
    lines.push_back(fmt::format(
        "--batch {}: every batch is of one class, so that there is nothing to tell apart and the "
        "loss teaches nothing; take {} or more",
        s.batch, 2 * s.per_class));
  }
  if (const std::string line = sampler_line(parts); !line.empty()) lines.push_back(line);
  if (parts.held_out != nullptr) {
    lines.push_back(held_out_line(parts));
    if (const std::string line = trained_on_line(parts); !line.empty()) lines.push_back(line);
    if (parts.held_out->is_one_class()) {
      lines.push_back(
          "held out: all of it is one class, so that whatever is found is right: its metrics mean "
          "nothing, nor does the best epoch; hold out more classes");
    }
  }
  if (parts.train_sample != nullptr) lines.push_back(training_sample_line(parts));
  for (const Dataset* data : {&parts.data, parts.held_out}) {
    if (data == nullptr || data->left_out().empty()) continue;
    std::string line = fmt::format("left out: in {}, {}", data->name(), text_of(data->left_out()));
    // Both data sets may be in one folder.
    if (lines.empty() || lines.back() != line) lines.push_back(std::move(line));
  }
  lines.push_back(loss_line(parts));
  if (parts.processes > 1) lines.push_back(processes_line(parts));
  if (s.chunk > 0 && s.chunk < share(parts)) lines.push_back(chunk_line(parts));
  const std::string ways = parts.trainer.program().implementations();
  if (!ways.empty()) lines.push_back("on the GPU: " + ways);
  lines.push_back(memory_line(parts));
  lines.push_back(fmt::format("disk in MiB: {:.1f} for {}",
                              static_cast<double>(parts.trainer.state_bytes()) / kMebibyte,
                              s.epochs == 0 ? s.out + "/last.h5"
                                            : fmt::format("each of {}/best.h5, last.h5, "
                                                          "previous.h5 and the next one while it "
                                                          "is written",
                                                          s.out)));
  return lines;
}

}  // namespace rk
