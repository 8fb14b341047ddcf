#include "data/sources/open_dataset.h"

#include "data/sources/folder.h"
#include "data/sources/folder_splits.h"
#include "data/sources/glyphs.h"
#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/base/nearest.h"
#include "engine/base/note.h"
#include "engine/base/random.h"
#include "engine/base/random_stream.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <system_error>
#include <utility>

namespace rk {
namespace {

// A kind of data set. `splits` returns the splits of the data itself; empty for a flat set, for
// which `read` returns the same for every split.
struct Kind {
  std::string_view name;
  std::string_view usage;
  std::string_view help;
  bool has_path;
  std::vector<std::string> keys;
  std::vector<Split> (*splits)(const DataSpec& spec);
  Dataset (*read)(const DataSpec& spec, Split split);
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> table{
      {"folder",
       "folder:PATH[,categories=a+b][,splits=none][,exif=turn]",
       "PATH/[train|val|test|query|gallery/][category/]class/image; exif=turn turns pictures "
       "upright by their EXIF orientation",
       true,
       {"categories", "splits", "exif"},
       folder_splits,
       read_folder},
      {"glyphs", "glyphs[:classes=100,...]", glyphs_help(), false, glyphs_keys(), glyphs_splits,
       read_glyphs},
  };
  return table;
}

const std::vector<std::string> kCommonKeys{"val_classes", "val_order", "val_seed", "min_images",
                                           "merge"};

// Null: there is no such kind.
const Kind* kind_of(std::string_view name) {
  const auto found = std::find_if(kinds().begin(), kinds().end(),
                                  [&](const Kind& kind) { return kind.name == name; });
  return found == kinds().end() ? nullptr : &*found;
}

const Kind& find_kind(const DataSpec& spec) {
  const Kind* found = kind_of(spec.kind);
  if (found == nullptr) {
    std::string known;
    for (const Kind& kind : kinds())
      known += fmt::format("{} {}", known.empty() ? "" : ",", kind.usage);
    const std::vector<std::string> near = nearest(spec.kind, dataset_kinds());
    fail<UsageError>("'{}' is neither a folder that is there nor a kind of data; {}known:{}",
                     spec.kind, near.empty() ? "" : suggestion(spec.kind, dataset_kinds()) + " ",
                     known);
  }
  if (!found->has_path && !spec.path.empty()) {
    fail<UsageError>("{}: '{}' is no key=value; write {}", spec.kind, spec.path, found->usage);
  }
  std::vector<std::string> keys = found->keys;
  keys.insert(keys.end(), kCommonKeys.begin(), kCommonKeys.end());
  for (const auto& [key, value] : spec.options) {
    require_known(spec.kind, "no option '{}'", key, keys);
  }
  return *found;
}

// How the training classes are divided.
struct HoldOut {
  double share = 0;  // 0: nothing is held out
  bool random = false;
  std::uint64_t seed = 0;
};

HoldOut hold_out(const DataSpec& spec) {
  HoldOut out;
  out.share = spec.number("val_classes", 0, 0, 1);
  if (out.share == 1) fail<UsageError>("{}: val_classes=1 leaves nothing to train on", spec.kind);
  const std::string order = spec.get("val_order", "default");
  if (order != "default" && order != "random") {
    fail<UsageError>("{}: val_order={} is neither default nor random", spec.kind, order);
  }
  out.random = order == "random";
  out.seed = static_cast<std::uint64_t>(
      spec.integer("val_seed", 0, 0, std::numeric_limits<std::int64_t>::max()));
  const auto note_idle = [&](const std::string& key, bool works, const char* needs) {
    const std::string value = spec.get(key, "");
    if (works || value.empty()) return;
    note_first("idle " + key, fmt::format("{}={}: has no effect without {}", key, value, needs));
  };
  note_idle("val_order", out.share > 0, "val_classes");
  note_idle(
      "val_seed", out.share > 0 && out.random,
      out.share > 0 ? "val_order=random: the last classes in order are held out" : "val_classes");
  return out;
}

// The classes of `split` (train or val) among `count` training classes, ascending.
std::vector<std::int64_t> divide(const DataSpec& spec, const HoldOut& how, std::int64_t count,
                                 Split split) {
  if (count < 2) {
    fail<InputError>("{}: {} class cannot be divided by val_classes; leave the option out",
                     spec.text(), count);
  }
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (how.random) {
    CounterRandom random(how.seed, random_stream(RandomUse::kHoldOut), 0);
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[at(random.below(static_cast<std::int64_t>(i)))]);
    }
  }
  const auto rounded =
      static_cast<std::int64_t>(std::llround(how.share * static_cast<double>(count)));
  const auto held = std::clamp<std::int64_t>(rounded, 1, count - 1);
  const auto middle = order.end() - held;
  if (split == Split::kVal) {
    order.erase(order.begin(), middle);
  } else {
    order.erase(middle, order.end());
  }
  std::sort(order.begin(), order.end());
  return order;
}

// Query and gallery are the two sides of one test; nullopt: the split has no other side.
std::optional<Split> other_side(Split split) {
  if (split == Split::kQuery) return Split::kGallery;
  if (split == Split::kGallery) return Split::kQuery;
  return std::nullopt;
}

// beside: the other side of the test, whose images count too; null: none.
Dataset drop_small_classes(std::int64_t least, Dataset data, const Dataset* beside) {
  std::map<std::string, std::size_t> more;
  for (std::size_t c = 0; beside != nullptr && c < beside->members().size(); ++c) {
    more[beside->classes()[c].name] = beside->members()[c].size();
  }
  std::vector<std::int64_t> kept;
  LeftOut left_out = data.left_out();
  for (std::size_t c = 0; c < data.members().size(); ++c) {
    const std::string& name = data.classes()[c].name;
    const std::size_t images = data.members()[c].size() + (more.contains(name) ? more[name] : 0);
    if (static_cast<std::int64_t>(images) >= least) {
      kept.push_back(static_cast<std::int64_t>(c));
    } else {
      left_out.small_classes.push_back(name);
    }
  }
  if (kept.size() == data.classes().size()) return data;
  if (kept.empty()) {
    fail<InputError>("{}: no class has {}; add pictures or lower min_images", data.name(),
                     counted(least, "image"));
  }
  Dataset large = data.select(kept);
  large.set_left_out(std::move(left_out));
  return large;
}

bool contains(const std::vector<Split>& splits, Split split) {
  return std::find(splits.begin(), splits.end(), split) != splits.end();
}

std::string split_list(const std::vector<Split>& splits, std::string_view between) {
  std::string text;
  for (const Split split : splits) {
    if (!text.empty()) text += between;
    text += name_of(split);
  }
  return text;
}

// The splits including a held-out val; throws InputError if val_classes does not apply to the data.
std::vector<Split> distinct_splits(const DataSpec& spec, const HoldOut& how,
                                   std::vector<Split> own) {
  const bool held = how.share > 0;
  if (own.empty())
    return held ? std::vector{Split::kTrain, Split::kVal} : std::vector{Split::kTrain};
  if (!held) return own;
  if (contains(own, Split::kVal)) {
    fail<InputError>("{}: it has a val split already; leave val_classes out", spec.text());
  }
  if (!contains(own, Split::kTrain)) {
    fail<InputError>("{}: it has no train split to hold classes out of; leave val_classes out",
                     spec.text());
  }
  own.insert(std::find(own.begin(), own.end(), Split::kTrain) + 1, Split::kVal);
  return own;
}

}  // namespace

Split parse_split(std::string_view name) {
  if (const std::optional<Split> split = split_of_folder(std::string(name))) return *split;
  fail<UsageError>("'{}' is no split; {}", name, suggestion(name, split_names()));
}

std::vector<std::string> dataset_kinds() {
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) names.emplace_back(kind.name);
  return names;
}

std::string dataset_help(bool only_files) {
  std::string text;
  for (const Kind& kind : kinds()) {
    if (kind.has_path || !only_files) text += fmt::format("{}: {}\n", kind.usage, kind.help);
  }
  return text +
         "PATH alone is folder:PATH\n"
         "any kind: val_classes=0.2,val_order=default|random,val_seed=0 holds classes out; "
         "min_images=2 leaves small classes out; merge=3 makes one of every three training classes "
         "(of a category)";
}

DataSpec read_data_spec(std::string_view text) {
  const auto with_home = [](DataSpec spec) {
    const char* home = std::getenv("HOME");
    if (home != nullptr && (spec.path == "~" || spec.path.starts_with("~/"))) {
      spec.path.replace(0, 1, home);
    }
    return spec;
  };
  const std::string_view name = text.substr(0, text.find(':'));
  const Kind* kind = kind_of(name);
  if (kind == nullptr) {
    DataSpec folder = with_home(parse_data_spec("folder:" + std::string(text), true));
    std::error_code ignored;
    if (std::filesystem::is_directory(folder.path, ignored)) return folder;
  }
  return with_home(parse_data_spec(text, kind != nullptr && kind->has_path));
}

std::vector<Split> dataset_splits(const DataSpec& spec) {
  const std::vector<Split> own = find_kind(spec).splits(spec);
  return distinct_splits(spec, hold_out(spec), own);
}

Dataset open_dataset(const DataSpec& spec, Split split) {
  const Kind& kind = find_kind(spec);
  const HoldOut how = hold_out(spec);
  const std::vector<Split> own = kind.splits(spec);
  const std::vector<Split> splits = distinct_splits(spec, how, own);
  const bool undivided = own.empty() && how.share == 0;
  const bool whole = undivided && (split == Split::kTrain || split == Split::kTest);
  if (!whole && !contains(splits, split)) {
    const std::string what_is =
        undivided ? "for it is not divided" : "there is " + split_list(splits, ", ");
    const std::string advice =
        split == Split::kVal     ? "hold classes out with val_classes=0.2"
        : undivided              ? "give data that has one, or leave the split out (eval: --split)"
        : split == Split::kTrain ? "give a folder that has one, or one of classes alone"
                                 : fmt::format("ask for one of these (eval: --split {})",
                                               split_list(splits, " or --split "));
    fail<InputError>("{}: no {} split, {}; {}", spec.text(), name_of(split), what_is, advice);
  }
  const bool divided = how.share > 0 && (split == Split::kTrain || split == Split::kVal);
  const std::int64_t least = spec.integer("min_images", 1, 1, 1'000'000'000);
  const std::optional<Split> other = least > 1 ? other_side(split) : std::nullopt;
  std::optional<Dataset> beside;
  if (other && contains(own, *other)) beside = kind.read(spec, *other);
  Dataset data = drop_small_classes(least, kind.read(spec, divided ? Split::kTrain : split),
                                    beside ? &*beside : nullptr);
  data.set_part(whole ? "the whole set (no splits)" : fmt::format("split {}", name_of(split)));
  if (divided) {
    data = data.select(divide(spec, how, static_cast<std::int64_t>(data.classes().size()), split));
  }
  const std::int64_t merged = spec.integer("merge", 1, 1, 1'000'000'000);
  return split == Split::kTrain && merged > 1 ? data.merge(merged) : data;
}

Dataset open_dataset(std::string_view spec, Split split) {
  return open_dataset(read_data_spec(spec), split);
}

}  // namespace rk
