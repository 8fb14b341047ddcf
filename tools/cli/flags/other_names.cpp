#include "tools/cli/flags/other_names.h"

#include "engine/base/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace rk {
namespace {

// Keys have no leading dashes, and '_' for inner '-'.
const std::map<std::string_view, std::string_view> kOurs = {{"learning_rate", "lr"},
                                                            {"lr0", "lr"},
                                                            {"batch_size", "batch"},
                                                            {"bs", "batch"},
                                                            {"output", "out"},
                                                            {"output_dir", "out"},
                                                            {"save_dir", "out"},
                                                            {"log_dir", "out"},
                                                            {"model", "arch"},
                                                            {"backbone", "arch"},
                                                            {"architecture", "arch"},
                                                            {"network", "arch"},
                                                            {"embedding_size", "dim"},
                                                            {"embedding_dim", "dim"},
                                                            {"embed_dim", "dim"},
                                                            {"criterion", "loss"},
                                                            {"opt", "optimizer"},
                                                            {"optim", "optimizer"},
                                                            {"wd", "weight-decay"},
                                                            {"sched", "schedule"},
                                                            {"scheduler", "schedule"},
                                                            {"lr_scheduler", "schedule"},
                                                            {"warmup_epochs", "warmup"},
                                                            {"num_workers", "workers"},
                                                            {"imgsz", "image-size"},
                                                            {"img_size", "image-size"},
                                                            {"input_size", "image-size"},
                                                            {"pretrained", "weights"},
                                                            {"init", "weights"},
                                                            {"amp", "precision"},
                                                            {"dtype", "precision"},
                                                            {"config", "recipe"},
                                                            {"gpu", "device"},
                                                            {"pooling", "pool"},
                                                            {"samples_per_class", "per-class"},
                                                            {"num_instances", "per-class"},
                                                            {"val_data", "test-data"},
                                                            {"accumulate", "chunk"},
                                                            {"accum", "chunk"},
                                                            {"grad_accum", "chunk"},
                                                            {"gradient_accumulation", "chunk"},
                                                            {"fp16", "precision"},
                                                            {"bf16", "precision"},
                                                            {"freeze_bn", "bn"},
                                                            {"gamma", "drop-factor"},
                                                            {"lr_gamma", "drop-factor"},
                                                            {"step_size", "drop-every"},
                                                            {"milestones", "drop-at"},
                                                            {"eta_min", "lr-floor"},
                                                            {"min_lr", "lr-floor"}};

}  // namespace

std::string name_advice(std::string_view name, const std::vector<std::string>& known) {
  const std::size_t begin = std::min(name.find_first_not_of('-'), name.size());
  std::string plain(name.substr(begin));
  std::replace(plain.begin(), plain.end(), '-', '_');
  if (const auto ours = kOurs.find(plain); ours != kOurs.end()) {
    const std::string flag = std::string(name.substr(0, begin)) + std::string(ours->second);
    if (std::find(known.begin(), known.end(), flag) != known.end()) {
      return fmt::format("did you mean {}?", flag);
    }
  }
  return suggestion(name, known);
}

}  // namespace rk
