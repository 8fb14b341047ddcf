#include "tools/probe/data_survey.h"

#include "data/images/decode.h"
#include "data/images/exif.h"
#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/base/parallel.h"
#include "engine/system/read_file.h"
#include "engine/system/signals.h"
#include "weights/sealed_file.h"

#include <algorithm>
#include <exception>
#include <new>

namespace rk {
namespace {

SurveyedPicture look_at(const Dataset& data, std::int64_t index) {
  SurveyedPicture picture;
  picture.index = index;
  const std::string path = data.item_name(index);
  try {
    const std::vector<std::byte> file = read_file(path, kMaxImageFileBytes);
    picture.content = sha256(file);
    picture.orientation = exif_orientation(file);
    const Image image = decode_image(file, path);
    picture.width = image.width();
    picture.height = image.height();
  } catch (const std::bad_alloc&) {
    picture.problem = path + ": looking at it takes more memory than there is; free memory";
    picture.system_failed = true;
  } catch (const SystemError& error) {
    picture.problem = error.what();
    picture.system_failed = true;
  } catch (const DeviceError&) {
    throw;  // of a library that reads no picture at all
  } catch (const std::exception& error) {
    picture.problem = error.what();
  }
  return picture;
}

}  // namespace

std::vector<SurveyedPicture> survey(const Context& context, const Dataset& data,
                                    const std::function<void(std::int64_t done)>& progress) {
  constexpr std::int64_t kAtATime = 64;  // between checks for signals
  std::vector<SurveyedPicture> pictures(static_cast<std::size_t>(data.size()));
  for (std::int64_t begin = 0; begin < data.size(); begin += kAtATime) {
    stop_if_interrupted();
    const std::int64_t end = std::min(data.size(), begin + kAtATime);
    parallel_for(context.threads(), end - begin,
                 [&](std::int64_t i, int) { pictures[at(begin + i)] = look_at(data, begin + i); });
    progress(end);
  }
  return pictures;
}

}  // namespace rk
