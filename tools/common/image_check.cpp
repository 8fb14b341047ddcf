#include "tools/common/image_check.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/base/note.h"
#include "engine/base/parallel.h"
#include "engine/base/printable.h"
#include "engine/system/read_file.h"
#include "engine/system/signals.h"
#include "tools/cli/cli.h"
#include "tools/cli/progress.h"
#include "weights/atomic_file.h"
#include "weights/run_folder.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <mutex>
#include <new>
#include <span>
#include <system_error>

namespace rk {

namespace {

std::string list_path(const std::string& folder) {
  return (std::filesystem::path(folder) / kBadImagesFile).string();
}

void remove_list(const std::string& folder) {
  std::error_code ignored;
  std::filesystem::remove(list_path(folder), ignored);
}

// Without reasons there is no list.
void write_list(const std::string& folder, const std::vector<std::string>& reasons) {
  if (reasons.empty()) return remove_list(folder);
  std::string list;
  for (const std::string& reason : reasons) list += one_line(reason) + "\n";
  write_atomic(list_path(folder), list);
}

// How to train without some of the images: others of their class take their place, if it has any.
std::string way_without(const Dataset& data, const std::vector<BadImage>& bad) {
  std::vector<std::size_t> lost(data.classes().size());
  for (const BadImage& image : bad) {
    const auto label = static_cast<std::size_t>(data.label(image.index));
    if (++lost[label] < data.members()[label].size()) continue;
    return fmt::format("none of class '{}' can be: convert them to JPEG or PNG, or remove it",
                       data.classes()[label].name);
  }
  return fmt::format("--max-bad {} trains on the others", bad.size());
}

// Names the first bad image with its reason; if there are several, lists all in a file.
[[noreturn]] void refuse(const Dataset& data, std::vector<BadImage> bad, std::int64_t looked_at,
                         const std::string& folder) {
  const bool all = looked_at == data.size();
  std::ranges::sort(bad, {}, &BadImage::reason);
  std::string where;
  if (bad.size() > 1) {
    std::filesystem::create_directories(folder);
    std::vector<std::string> reasons;
    for (const BadImage& image : bad) reasons.push_back(image.reason);
    write_list(folder, reasons);
    where = fmt::format(", all listed in {}", list_path(folder));
  }
  fail<InputError>(
      "{} ({} of {}{} cannot be read{}; {})", bad[0].reason, bad.size(), all ? "" : "the first ",
      counted(looked_at, "image"), where,
      std::ssize(bad) == looked_at ? "convert them to JPEG or PNG" : way_without(data, bad));
}

// The share of a picture's longer side that is left of it in evaluation.
double share_seen(const Image& image, const AugmentOptions& evaluation) {
  if (evaluation.stretch || evaluation.resize == 0) return 1;
  const double longer = std::max(image.width(), image.height());
  const double resized = evaluation.resize * longer / std::min(image.width(), image.height());
  return std::min(1.0, evaluation.size / resized);
}

// Shops' and people's pictures are tall, and of most of them only the middle would be seen.
void note_left_out(const Dataset& data, std::vector<double> shares,
                   const AugmentOptions& evaluation) {
  constexpr double kLittle = 0.45;  // a picture of 16 x 9 keeps 0.49 by default
  if (shares.empty()) return;
  const auto middle = shares.begin() + std::ssize(shares) / 2;
  std::nth_element(shares.begin(), middle, shares.end());
  if (*middle >= kLittle) return;
  note(fmt::format(
      "{}: evaluation sees {:.0f} % of the longer side of a typical picture, {} x {} in "
      "the middle; --stretch takes whole pictures",
      data.name(), 100 * *middle, evaluation.size, evaluation.size));
}

}  // namespace

void check_images(const Context& context, const Dataset& data, std::int64_t max_bad,
                  const std::string& folder, const AugmentOptions& evaluation, bool quiet) {
  constexpr std::int64_t kImages = 5000;
  constexpr std::int64_t kAtATime = 64;                               // between checks for signals
  if (data.size() == 0 || data.items().front().path.empty()) return;  // drawn, not read
  const std::int64_t count = std::min(data.size(), kImages);
  const std::int64_t allowed = allowed_bad(max_bad, data.size());
  const std::int64_t lying = data.rotated();
  Progress progress("checking images", count, "images", quiet);
  std::vector<BadImage> bad;
  std::vector<double> shares;
  std::exception_ptr failure;
  std::mutex mutex;
  const auto no_fault_of_the_picture = [&] {
    const std::lock_guard guard(mutex);
    if (!failure) failure = std::current_exception();
  };
  for (std::int64_t begin = 0; begin < count; begin += kAtATime) {
    stop_if_interrupted();
    const std::int64_t end = std::min(count, begin + kAtATime);
    parallel_for(context.threads(), end - begin, [&](std::int64_t i, int) {
      try {
        const double share = share_seen(data.load(begin + i), evaluation);
        const std::lock_guard guard(mutex);
        shares.push_back(share);
      } catch (const SystemError&) {
        no_fault_of_the_picture();
      } catch (const std::bad_alloc&) {
        no_fault_of_the_picture();
      } catch (const DeviceError&) {  // a library that reads no picture at all
        no_fault_of_the_picture();
      } catch (const std::exception& error) {
        const std::lock_guard guard(mutex);
        bad.push_back(
            {.index = begin + i, .path = data.items()[at(begin + i)].path, .reason = error.what()});
      }
    });
    if (failure) std::rethrow_exception(failure);
    progress.update(end);
  }
  if (static_cast<std::int64_t>(bad.size()) <= allowed) {
    remove_list(folder);  // left by a refused run
    progress.finish();
    note_rotated(data, lying);
    note_left_out(data, std::move(shares), evaluation);
    return;
  }
  refuse(data, std::move(bad), count, folder);
}

std::string note_rotated(const Dataset& data, std::int64_t before, const std::string& advice) {
  const std::int64_t count = data.rotated() - before;
  if (count == 0) return "";
  std::string text = fmt::format(
      "{}: {} of the pictures looked at {} stored rotated or mirrored (EXIF orientation) and used "
      "as stored; {}",
      data.name(), count, count == 1 ? "is" : "are", advice);
  note(text);
  return text;
}

std::vector<std::string> BadImageFile::update(const std::vector<BadImage>& all) {
  std::vector<std::string> lines, reasons;
  for (const BadImage& image : all) reasons.push_back(image.reason);
  for (; told_ < all.size(); ++told_) lines.push_back("left out: " + one_line(reasons[told_]));
  if (listed_ == all.size()) return lines;
  try {
    write_list(folder_, reasons);
    listed_ = all.size();
  } catch (const InputError& error) {
    lines.push_back(fmt::format("not listed: {}", error.what()));
  }
  return lines;
}

}  // namespace rk
