#include "tools/image_check.h"

#include "engine/error.h"
#include "engine/note.h"
#include "engine/parallel.h"
#include "tools/cli.h"
#include "tools/progress.h"
#include "tools/signals.h"
#include "weights/atomic_file.h"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <span>

namespace rk {

void check_images(const Context& context, const Dataset& data, std::int64_t max_bad, bool quiet) {
  constexpr std::int64_t kImages = 5000;
  constexpr std::int64_t kAtATime = 64;  // between two looks at signals
  if (data.size() == 0 || data.items().front().path.empty()) return;  // drawn, not read
  const std::int64_t count = std::min(data.size(), kImages);
  const std::int64_t allowed =
      max_bad >= 0 ? max_bad : std::max<std::int64_t>(10, data.size() / 1000);
  Progress progress("checking images", count, "images", quiet);
  std::vector<std::string> bad;
  std::mutex mutex;
  for (std::int64_t begin = 0; begin < count; begin += kAtATime) {
    stop_if_interrupted();
    const std::int64_t end = std::min(count, begin + kAtATime);
    parallel_for(context.threads(), end - begin, [&](std::int64_t i, int) {
      try {
        data.load(begin + i);
      } catch (const std::exception& error) {
        const std::lock_guard guard(mutex);
        bad.emplace_back(error.what());
      }
    });
    progress.update(end);
  }
  if (static_cast<std::int64_t>(bad.size()) <= allowed) return note_lying(data);
  std::sort(bad.begin(), bad.end());
  fail<InputError>("{} ({} of {} images cannot be read; --max-bad {} trains on the others)", bad[0],
                   bad.size(), count, bad.size());
}

void note_lying(const Dataset& data) {
  const std::int64_t count = data.lying();
  if (count == 0) return;
  note(
      fmt::format("{}: {} of the pictures looked at are stored lying or mirrored (EXIF "
                  "orientation) and are seen so; ,exif=turn behind the folder turns them upright",
                  data.name(), count));
}

std::vector<std::string> UnreadableImages::update(const std::vector<BadImage>& all) {
  std::vector<std::string> lines;
  if (all.size() == known_) return lines;
  std::string list;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string reason = one_line(all[i].reason);
    if (i >= known_) lines.push_back("left out: " + reason);
    list += reason + "\n";
  }
  known_ = all.size();
  write_atomic((std::filesystem::path(folder_) / "bad_files.txt").string(),
               std::as_bytes(std::span(list.data(), list.size())));
  return lines;
}

}  // namespace rk
