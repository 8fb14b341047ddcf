#include "data/sources/dataset.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/fnv1a.h"
#include "engine/base/integers.h"

#include <algorithm>
#include <utility>

namespace rk {
namespace {

// "2 empty folders ('c1', 'c7')"; empty if there are no names.
std::string some_of(const std::vector<std::string>& names, const char* what, const char* how = "") {
  if (names.empty()) return "";
  constexpr std::size_t kMost = 3;
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kMost));
  return fmt::format("{}{} ('{}'{})", counted(names.size(), what), how,
                     fmt::join(names.begin(), end, "', '"), names.size() > kMost ? ", ..." : "");
}

}  // namespace

std::string_view name_of(Split split) {
  switch (split) {
    case Split::kTrain: return "train";
    case Split::kVal: return "val";
    case Split::kTest: return "test";
    case Split::kQuery: return "query";
    case Split::kGallery: return "gallery";
  }
  return "";
}

std::vector<std::string> split_names() {
  std::vector<std::string> names;
  for (const Split split :
       {Split::kTrain, Split::kVal, Split::kTest, Split::kQuery, Split::kGallery}) {
    names.emplace_back(name_of(split));
  }
  return names;
}

std::string text_of(const std::map<std::string, std::int64_t>& files) {
  std::vector<std::pair<std::int64_t, std::string>> counts;
  for (const auto& [ending, count] : files) {
    counts.emplace_back(-count, ending.empty() ? "without an ending" : "." + ending);
  }
  std::sort(counts.begin(), counts.end());
  std::string text;
  for (const auto& [count, ending] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", -count, ending);
  }
  return text;
}

std::string text_of(const LeftOut& left_out) {
  std::vector<std::string> parts;
  if (!left_out.files.empty()) {
    parts.push_back("files that are no images it reads: " + text_of(left_out.files));
  }
  for (std::string names : {some_of(left_out.empty_folders, "empty folder"),
                            some_of(left_out.small_classes, "class", " below min_images")}) {
    if (!names.empty()) parts.push_back(std::move(names));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string counts_text(const Dataset& data, const char* of) {
  std::string text =
      fmt::format("{} of {}", counted(data.size(), "image"), counted(data.classes().size(), of));
  if (!data.categories().empty()) {
    text += " in " + counted(data.categories().size(), "category");
  }
  return text;
}

Dataset::Dataset(std::string name, std::vector<DataItem> items, std::vector<DataClass> classes,
                 std::vector<std::string> categories, std::shared_ptr<const ImageSource> source)
    : name_(std::move(name)),
      items_(std::move(items)),
      classes_(std::move(classes)),
      categories_(std::move(categories)),
      members_(classes_.size()),
      source_(std::move(source)) {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const std::int64_t label = items_[i].label;
    expect(label >= 0 && label < static_cast<std::int64_t>(classes_.size()),
           "[dataset] expected labels below {}, got {}", classes_.size(), label);
    members_[at(label)].push_back(static_cast<std::int64_t>(i));
  }
}

std::vector<std::string> Dataset::class_names() const {
  std::vector<std::string> names;
  for (const DataClass& of : classes_) names.push_back(of.name);
  for (const DataClass& of : classes_) {
    names.insert(names.end(), of.merged.begin(), of.merged.end());
  }
  return names;
}

bool Dataset::is_one_class() const {
  return std::count_if(members_.begin(), members_.end(),
                       [](const auto& images) { return !images.empty(); }) == 1;
}

std::int64_t Dataset::category(std::int64_t index) const {
  return classes_[at(label(index))].category;
}

Image Dataset::load(std::int64_t index) const {
  return source_->load(item(index), classes_[at(label(index))]);
}

std::string Dataset::item_name(std::int64_t index) const {
  return source_->name(item(index), classes_[at(label(index))]);
}

std::uint64_t Dataset::fingerprint() const {
  std::uint64_t hash = fnv1a("");
  const auto add = [&hash](std::string_view bytes) {
    hash = fnv1a("\xFF", fnv1a(bytes, hash));  // separated, so that "ab","c" differs from "a","bc"
  };
  // The 0 is there because it was in the identities of runs that go on.
  for (const DataClass& c : classes_) add(fmt::format("{}/{}/0", c.name, c.category));
  for (const DataItem& i : items_) add(fmt::format("{}/{}/{}", i.path, i.key, i.label));
  if (const std::string drawn_by = source_->drawn_by(); !drawn_by.empty()) add(drawn_by);
  return hash;
}

std::string Dataset::identity() const {
  return fmt::format("{} images {:016x}", size(), fingerprint());
}

Dataset Dataset::select(const std::vector<std::int64_t>& classes) const {
  std::vector<DataClass> kept;
  std::vector<std::int64_t> new_label(classes_.size(), -1);
  std::vector<std::string> categories;
  std::vector<std::int64_t> new_category(categories_.size(), -1);
  for (const std::int64_t c : classes) {
    new_label[at(c)] = static_cast<std::int64_t>(kept.size());
    kept.push_back(classes_[at(c)]);
    if (kept.back().category < 0) continue;
    std::int64_t& category = new_category[at(kept.back().category)];
    if (category < 0) {
      category = static_cast<std::int64_t>(categories.size());
      categories.push_back(categories_[at(kept.back().category)]);
    }
    kept.back().category = category;
  }
  std::vector<DataItem> items;
  for (const DataItem& old : items_) {
    const std::int64_t label = new_label[at(old.label)];
    if (label < 0) continue;
    items.push_back(old);
    items.back().label = label;
  }
  Dataset chosen(name_, std::move(items), std::move(kept), std::move(categories), source_);
  chosen.part_ = part_;
  chosen.left_out_ = left_out_;
  return chosen;
}

Dataset Dataset::merge(std::int64_t each) const {
  std::vector<DataClass> merged;
  std::vector<std::int64_t> new_label(classes_.size());
  for (std::size_t begin = 0; begin < classes_.size();) {
    const std::int64_t category = classes_[begin].category;
    std::size_t end = begin;
    while (end < classes_.size() && classes_[end].category == category) ++end;
    const auto groups =
        std::max<std::int64_t>(static_cast<std::int64_t>(end - begin) / each, std::int64_t{1});
    const auto first = static_cast<std::int64_t>(merged.size());
    for (std::size_t c = begin; c < end; ++c) {
      const std::int64_t group = std::min(static_cast<std::int64_t>(c - begin) / each, groups - 1);
      new_label[c] = first + group;
      if (new_label[c] == static_cast<std::int64_t>(merged.size())) {
        merged.push_back({classes_[c].name, category});
      } else {
        merged.back().name += "+" + classes_[c].name;
      }
      merged.back().merged.push_back(classes_[c].name);
    }
    begin = end;
  }
  std::vector<DataItem> items = items_;
  for (DataItem& item : items) item.label = new_label[at(item.label)];
  Dataset out(name_, std::move(items), std::move(merged), categories_, source_);
  out.part_ = part_;
  out.left_out_ = left_out_;
  return out;
}

}  // namespace rk
