#include "tools/train_description.h"

#include "data/loader.h"

#include <fmt/format.h>

namespace rk {
namespace {

constexpr double kMebibyte = 1 << 20;

std::int64_t share(const TrainParts& parts) { return parts.settings.batch / parts.processes; }

// "352 images of 44 classes in 3 categories"
std::string counts(const Dataset& data, const char* other) {
  std::string text =
      fmt::format("{} images of {} {}classes", data.size(), data.classes().size(), other);
  if (!data.categories().empty())
    text += fmt::format(" in {} categories", data.categories().size());
  return text;
}

std::string batches_line(const TrainParts& parts) {
  const TrainSettings& s = parts.settings;
  const std::string of = s.sampler == "pk"
                             ? fmt::format("{} classes x {}", s.batch / s.per_class, s.per_class)
                             : fmt::format("{} images, sampler {}", s.batch, s.sampler);
  const std::int64_t batches = parts.sampler.batches_per_epoch();
  return fmt::format("data: {}, {}: {}; {} batch{} an epoch of {}", s.data, parts.data.part(),
                     counts(parts.data, ""), batches, batches == 1 ? "" : "es", of);
}

std::string loss_line(const TrainParts& parts) {
  const TrainSettings& s = parts.settings;
  std::string line = fmt::format("loss: {}", s.loss);
  if (s.memory > 0) {
    line += fmt::format("; up to {} embeddings of the last {} batches beside the batch",
                        s.memory * s.batch, s.memory);
  }
  if (parse_loss(s.loss).entry->kind == LossKind::kProxies) {
    line += fmt::format("; {} proxies at {:g} times the rate", parts.data.classes().size(),
                        s.proxy_rate);
  }
  return line;
}

std::string processes_line(const TrainParts& parts) {
  return fmt::format("processes: {}, {} images of a batch each; the loss sees all {}{}",
                     parts.processes, share(parts), parts.settings.batch,
                     parts.settings.bn == "train"
                         ? "; batch norm sees each part by itself (--bn frozen: as the whole batch)"
                         : "");
}

std::string chunk_line(const TrainParts& parts) {
  const TrainSettings& s = parts.settings;
  return fmt::format(
      "chunks: {} of {} images, so that activations are those of {} images, not of {}{}",
      share(parts) / s.chunk, s.chunk, s.chunk, share(parts),
      s.bn == "train" ? "; batch norm sees a chunk at a time (--bn frozen: as the whole batch)"
                      : "");
}

std::string memory_line(const TrainParts& parts) {
  const TrainSettings& s = parts.settings;
  auto groups = parts.trainer.memory();
  const LoaderOptions loading;
  groups.emplace_back("evaluation", parts.evaluation_bytes);
  groups.emplace_back("loader", static_cast<std::size_t>(loading.prefetch * share(parts) * 3) *
                                    static_cast<std::size_t>(s.image_size) *
                                    static_cast<std::size_t>(s.image_size));
  std::string line = parts.processes > 1 ? "memory in MiB, of each process:" : "memory in MiB:";
  double total = 0;
  for (const auto& [name, bytes] : groups) {
    if (bytes == 0) continue;
    line += fmt::format(" {} {:.1f},", name, static_cast<double>(bytes) / kMebibyte);
    total += static_cast<double>(bytes) / kMebibyte;
  }
  return fmt::format("{} together {:.1f}; decoded images up to {}", line, total, s.cache);
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
  if (parts.held_out != nullptr) {
    const bool own = s.test_data.empty();
    lines.push_back(fmt::format("held out: {}{}: {}; the best epoch is chosen on these",
                                own ? "" : s.test_data + ", ", parts.held_out->part(),
                                counts(*parts.held_out, "other ")));
  }
  for (const Dataset* data : {&parts.data, parts.held_out}) {
    if (data == nullptr || data->left_out().empty()) continue;
    lines.push_back(fmt::format("left out: in {}, files that are no images it reads: {}",
                                data->name(), text_of(data->left_out())));
  }
  lines.push_back(loss_line(parts));
  if (parts.processes > 1) lines.push_back(processes_line(parts));
  if (s.chunk > 0 && s.chunk < share(parts)) lines.push_back(chunk_line(parts));
  const std::string ways = parts.trainer.program().ways();
  if (!ways.empty()) lines.push_back("on the GPU: " + ways);
  lines.push_back(memory_line(parts));
  return lines;
}

}  // namespace rk
