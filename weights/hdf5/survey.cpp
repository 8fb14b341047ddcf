#include "weights/hdf5/survey.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <vector>

namespace rk {
namespace {

constexpr std::uint64_t kMaxInflation = 1100;  // deflate itself cannot do better than 1032
// A smaller claim cannot exhaust memory, even if nothing is stored for it.
constexpr std::uint64_t kSmallClaim = std::uint64_t{1} << 20;
constexpr std::uint64_t kFreeChunkBytes = std::uint64_t{64} << 20;
constexpr int kMaxDepth = 16;
constexpr std::size_t kMaxObjects = 100'000;

struct Link {
  std::string name;
  H5L_type_t type;
};

// At most kMaxObjects; nullopt if there are more.
std::optional<std::vector<Link>> links_of(hid_t group) {
  constexpr herr_t kTooMany = 1;
  std::vector<Link> links;
  auto collect = [](hid_t, const char* name, const H5L_info_t* link, void* out) -> herr_t {
    auto& list = *static_cast<std::vector<Link>*>(out);
    if (list.size() >= kMaxObjects) return kTooMany;
    try {  // an exception must not travel through the C library
      list.push_back({name, link->type});
    } catch (...) {
      return -1;
    }
    return 0;
  };
  hsize_t position = 0;
  const herr_t status = H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, &position, collect, &links);
  if (status < 0) throw std::runtime_error(hdf5_last_error());
  if (status == kTooMany) return std::nullopt;
  return links;
}

}  // namespace

void SurveyedHdf5::survey() {
  if (!file.valid()) {
    const std::string reason = hdf5_last_error();
    if (reason.find("signature not found") != std::string::npos) {
      refuse("not an HDF5 file; give a file written by Rankine, h5py or another HDF5 program");
    }
    refuse("cannot be opened as HDF5 ({}); it is truncated or damaged, copy it again",
           printable(reason));
  }
  objects["/"] = false;
  walk("/", 0);
}

void SurveyedHdf5::walk(const std::string& group, int depth) {
  if (depth > kMaxDepth) {
    refuse("groups are nested deeper than {}; it is not a file of tensors", kMaxDepth);
  }
  const Hdf5ObjectId id(H5Oopen(file.get(), group.c_str(), H5P_DEFAULT));
  if (!id.valid()) damaged(group);
  std::optional<std::vector<Link>> links;
  try {
    links = links_of(id.get());
  } catch (const std::runtime_error&) {
    damaged(group);
  }
  if (!links) too_many();
  for (const Link& link : *links) path_bytes_ += group.size() + 1 + link.name.size();
  if (path_bytes_ > kMaxPathBytes) {
    refuse("the paths in it take more than {} MiB; give its groups shorter names",
           kMaxPathBytes >> 20);
  }
  for (const Link& link : *links) {
    const std::string path = (group == "/" ? "" : group) + "/" + link.name;
    if (link.type != H5L_TYPE_HARD) {
      refuse(
          "{} is a link to elsewhere (soft or external), which is never followed; store the "
          "data itself",
          printable(path));
    }
    if (objects.size() >= kMaxObjects) too_many();
    const Hdf5ObjectId object(H5Oopen(id.get(), link.name.c_str(), H5P_DEFAULT));
    if (!object.valid()) damaged(path);
    const H5I_type_t type = H5Iget_type(object.get());
    if (type == H5I_DATASET) {
      check_storage(path, object.get());
      objects[path] = true;
    } else if (type == H5I_GROUP) {
      objects[path] = false;
      walk(path, depth + 1);
    } else {
      refuse("{} is neither a group nor a data set; remove it", printable(path));
    }
  }
}

void SurveyedHdf5::too_many() const { refuse("more than {} objects; split the file", kMaxObjects); }

void SurveyedHdf5::damaged(const std::string& path) const {
  const std::string reason = hdf5_last_error();
  if (reason.find("bad version number") != std::string::npos) {
    refuse(
        "{} cannot be read ({}): written by a newer HDF5, or damaged; write it without "
        "libver='latest', or copy it again",
        printable(path), printable(reason));
  }
  refuse("{} cannot be read ({}); the file is damaged, copy it again", printable(path),
         printable(reason));
}

// Refuses all that could make reading touch another file, another program or too much memory.
void SurveyedHdf5::check_storage(const std::string& path, hid_t dataset) const {
  const Hdf5PropertyId plist(H5Dget_create_plist(dataset));
  if (!plist.valid()) damaged(path);
  const H5D_layout_t layout = H5Pget_layout(plist.get());
  if (layout == H5D_VIRTUAL) {
    refuse("{} is a virtual data set, whose data lie in other files; store the data itself",
           printable(path));
  }
  if (layout != H5D_COMPACT && layout != H5D_CONTIGUOUS && layout != H5D_CHUNKED) damaged(path);
  if (H5Pget_external_count(plist.get()) != 0) {
    refuse("{} keeps its data in another file (external storage); store the data itself",
           printable(path));
  }
  const int filters = H5Pget_nfilters(plist.get());
  if (filters < 0) damaged(path);
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0, config = 0;
    std::size_t values = 0;
    const H5Z_filter_t filter = H5Pget_filter2(plist.get(), static_cast<unsigned>(i), &flags,
                                               &values, nullptr, 0, nullptr, &config);
    if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE) {
      refuse("{} is packed with filter {}; only gzip (deflate) and shuffle are read",
             printable(path), static_cast<int>(filter));
    }
  }
  const Hdf5SpaceId space(H5Dget_space(dataset));
  const Hdf5TypeId type(H5Dget_type(dataset));
  const hssize_t points = space.valid() ? H5Sget_simple_extent_npoints(space.get()) : -1;
  const std::size_t item = type.valid() ? H5Tget_size(type.get()) : 0;
  if (points < 0 || item == 0) damaged(path);
  const auto count = static_cast<std::uint64_t>(points);
  const std::uint64_t most = most_dataset_bytes(file_bytes);
  if (item > most || count > most / item) {
    refuse("{} claims {} elements of {} bytes, more than {}; split it", printable(path), count,
           item, most == file_bytes ? "the file has" : "1 GiB");
  }
  const std::uint64_t claimed = count * item;
  const std::uint64_t stored = H5Dget_storage_size(dataset);
  if (stored > file_bytes || claimed > std::max(kSmallClaim, kMaxInflation * stored)) {
    refuse(
        "{} claims {} bytes where the file of {} bytes stores {}; it is damaged or made to "
        "exhaust memory",
        printable(path), claimed, file_bytes, stored);
  }
  if (layout == H5D_CHUNKED) check_chunk(path, plist.get(), item, claimed);
}

// A chunk is unpacked as a whole, so it must not be larger than the data set (or 64 MiB).
void SurveyedHdf5::check_chunk(const std::string& path, hid_t plist, std::size_t item,
                               std::uint64_t claimed) const {
  hsize_t dims[H5S_MAX_RANK];
  const int rank = H5Pget_chunk(plist, H5S_MAX_RANK, dims);
  if (rank < 0) damaged(path);
  const std::uint64_t limit = std::max(claimed, kFreeChunkBytes);
  std::uint64_t bytes = item;
  for (int i = 0; i < rank; ++i) {
    if (dims[i] == 0 || bytes > limit / dims[i]) {
      refuse("{} is stored in pieces larger than itself; write it again with smaller chunks",
             printable(path));
    }
    bytes *= dims[i];
  }
}

}  // namespace rk
