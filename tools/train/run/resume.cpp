#include "tools/train/run/resume.h"

#include "data/sources/open_dataset.h"
#include "engine/base/english.h"
#include "engine/base/error.h"
#include "losses/registry.h"
#include "training/training_exif.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>

namespace rk {
namespace {

// Those of `names` that `others` lacks.
std::vector<std::string> missing_in(const std::vector<std::string>& others,
                                    const std::vector<std::string>& names) {
  const std::set<std::string> known(others.begin(), others.end());
  std::vector<std::string> more;
  std::copy_if(names.begin(), names.end(), std::back_inserter(more),
               [&](const std::string& name) { return !known.contains(name); });
  return more;
}

// The same as text: "2 new classes ('a', 'b')"; empty without any.
std::string lacking(const std::vector<std::string>& names, const std::vector<std::string>& others,
                    const char* what) {
  const std::vector<std::string> more = missing_in(others, names);
  if (more.empty()) return "";
  constexpr std::size_t kMost = 3;
  const std::size_t shown = std::min(more.size(), kMost);
  return fmt::format(
      "{} ('{}'{})", counted(more.size(), what),
      fmt::join(more.begin(), more.begin() + static_cast<std::ptrdiff_t>(shown), "', '"),
      more.size() > kMost ? ", ..." : "");
}

// " with 2 new classes ('a', 'b') and without 1 class ('c')"; empty if there are the same.
std::string class_changes(const std::vector<std::string>& before,
                          const std::vector<std::string>& now) {
  const std::string more = lacking(now, before, "new class"), gone = lacking(before, now, "class");
  if (gone.empty()) return more.empty() ? "" : " with " + more;
  return fmt::format("{} without {}", more.empty() ? "" : fmt::format(" with {} and", more), gone);
}

// " with exif=ignore instead of turn"; empty if that did not change.
std::string exif_change(const Checkpoint& checkpoint, const TrainSettings& settings) {
  const DataSpec spec = read_data_spec(settings.data);
  const std::string before = training_exif(checkpoint), now = spec.get("exif", "ignore");
  if (before.empty() || spec.path.empty() || before == now) return "";
  return fmt::format(" with exif={} instead of {}", now, before);
}

// Refuses data other than the checkpoint's, unless they are allowed and training can continue with
// them.
void accept_changed_data(const Checkpoint& checkpoint, const RunState& now,
                         const TrainSettings& settings, const SayLine& say) {
  const std::vector<std::string>& before =
      checkpoint.run().classes;  // of this run, then of earlier ones
  if (!settings.allow_changed_data) {
    fail<InputError>(
        "{}: was trained on {}, --data is now {}{}{}; restore the data, or go on with them as they "
        "are by --allow-changed-data",
        checkpoint.path(), checkpoint.run().data, now.data, class_changes(before, now.classes),
        exif_change(checkpoint, settings));
  }
  const auto proxies = checkpoint.loss_dims("proxies");
  const bool same_classes = before.size() >= now.classes.size() &&
                            std::equal(now.classes.begin(), now.classes.end(), before.begin()) &&
                            (!proxies || std::ssize(now.classes) == proxies->front());
  if (!same_classes && parse_loss(settings.loss).entry->kind == LossKind::kProxies) {
    fail<InputError>(
        "{}: has a proxy for each class of its data, and --data has other classes{}; start a new "
        "run with --weights {}",
        checkpoint.path(), class_changes(before, now.classes), checkpoint.path());
  }
  say(fmt::format(
      "data: {} when the run began, {} from now on{}: not the run that it would have been",
      checkpoint.run().data, now.data, class_changes(before, now.classes)));
}

// The same for the data that epochs are compared on, which older checkpoints do not record.
void accept_held_out(const Checkpoint& checkpoint, const RunState& now,
                     const TrainSettings& settings, const SayLine& say) {
  const std::string& held_out = checkpoint.run().held_out;
  if (held_out.empty() || held_out == now.held_out) return;
  if (!settings.allow_changed_data) {
    fail<InputError>(
        "{}: its epochs were compared on {}, held out are now {}; restore them, or go on with them "
        "as they are by --allow-changed-data",
        checkpoint.path(), held_out, now.held_out);
  }
  say(
      fmt::format("held out: {} when the run began, {} from now on: the best epoch so far was of "
                  "the former",
                  held_out, now.held_out));
}

}  // namespace

void accept_data(const Checkpoint& checkpoint, const RunState& now, const TrainSettings& settings,
                 const SayLine& say) {
  if (checkpoint.run().data != now.data) accept_changed_data(checkpoint, now, settings, say);
  accept_held_out(checkpoint, now, settings, say);
}

void require_countable(const Checkpoint& checkpoint, const TrainSettings& settings,
                       std::int64_t batches_per_epoch) {
  const RunState& run = checkpoint.run();
  const std::int64_t left =
      std::max<std::int64_t>(settings.epochs - run.epoch, 0) * batches_per_epoch;
  for (const std::int64_t count :
       {run.step, run.since_best, run.loss_scale.updates, run.loss_scale.good_steps}) {
    if (count <= kMostCounted - left) continue;
    fail<InputError>("{}: counts to {}, and {} more cannot be counted; use another checkpoint",
                     checkpoint.path(), count, counted(left, "step"));
  }
}

std::string place_of(const RunState& run) {
  if (run.step == 0) return "before the first step";
  return run.batch > 0 ? fmt::format("after batch {} of epoch {}", run.batch, run.epoch + 1)
                       : fmt::format("after epoch {}", run.epoch);
}

std::vector<std::pair<std::string, std::string>> changed_settings(
    const nlohmann::ordered_json& before, const nlohmann::ordered_json& now,
    const Checkpoint& checkpoint) {
  const std::set<std::string> of_the_state = {"arch",          "dim",       "pool", "gem-p",
                                              "stride-in-1x1", "optimizer", "seed"};
  const std::set<std::string> of_an_epoch = {"batch", "batches", "sampler", "per-class"};
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [name, value] : now.items()) {
    const auto old = before.find(name);
    if (old == before.end() || *old == value) continue;
    if (of_the_state.contains(name)) {
      fail<InputError>(
          "{}: was made with --{} {}, not {}; leave the flag out, or give another --out",
          checkpoint.path(), name, old->dump(), value.dump());
    }
    if (of_an_epoch.contains(name) && checkpoint.run().batch > 0) {
      fail<InputError>(
          "{}: was saved after batch {} of an epoch with --{} {}, so the rest of that epoch cannot "
          "be one with {}; leave the flag out until the epoch is done",
          checkpoint.path(), checkpoint.run().batch, name, old->dump(), value.dump());
    }
    if (name == "momentum" && now.value("optimizer", "") == "sgd" && old->is_number() &&
        *old == 0.0) {
      fail<InputError>(
          "{}: was trained by --momentum 0, so it holds none to go on with; leave the flag out, or "
          "begin anew with --weights {} and another --out",
          checkpoint.path(), checkpoint.path());
    }
    out.emplace_back(name, fmt::format("{}: {} in the checkpoint, {} from now on", name,
                                       old->dump(), value.dump()));
  }
  return out;
}

void add_classes(const std::vector<std::string>& more, std::vector<std::string>& names) {
  const std::vector<std::string> added = missing_in(names, more);
  names.insert(names.end(), added.begin(), added.end());
}

}  // namespace rk
