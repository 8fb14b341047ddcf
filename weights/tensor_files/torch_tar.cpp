#include "engine/base/error.h"
#include "engine/base/number_in.h"
#include "engine/base/printable.h"
#include "weights/tensor_files/archive_entries.h"
#include "weights/tensor_files/byte_cursor.h"
#include "weights/tensor_files/torch_file.h"
#include "weights/tensor_files/torch_pickle.h"

#include <optional>

namespace rk {
namespace {

constexpr std::int64_t kMaxObjects = 100'000;

class TarFile {
 public:
  TarFile(std::map<std::string, ArchiveEntry> entries, std::shared_ptr<const void> owner,
          const std::string& name)
      : entries_(std::move(entries)), owner_(std::move(owner)), name_(name) {}

  TensorFile read() {
    big_endian_ = is_big_endian(Pickle(member("sys_info").bytes, name_));
    read_storages();
    read_tensors();
    TensorFile file;
    file.path = name_;
    file.kind = TensorFile::Kind::kTorch;
    file.format = "PyTorch tar archive";
    TorchStorages storages;
    storages.find = [&](const PickleNode&) -> std::optional<TorchStorage> {
      refuse("holds a tensor of another version's form; save it again");
    };
    storages.whole = [&](const PickleNode& node) { return tensor_of(node); };
    collect_tensors(Pickle(member("pickle").bytes, name_), storages, file);
    return file;
  }

 private:
  const ArchiveEntry& member(const std::string& path) const {
    const auto found = entries_.find(path);
    if (found == entries_.end()) {
      refuse("a tar archive without '" + path +
             "', so none of torch.save(); give a file of weights");
    }
    return found->second;
  }

  std::int64_t count(ByteCursor& cursor) const {
    const Pickle number = cursor.pickle();
    const std::optional<std::int64_t> value = pickled_integer(number.root());
    if (!value || *value < 0 || *value > kMaxObjects) {
      refuse("holds a number of objects that makes no sense; download it again");
    }
    return *value;
  }

  // The integer at position `at` of a tuple of `size` items.
  std::int64_t integer(const PickleNode& tuple, std::size_t at, std::size_t size) const {
    const std::optional<std::int64_t> value =
        tuple.items.size() == size ? pickled_integer(*tuple.items[at]) : std::nullopt;
    if (!value) refuse("describes a storage or tensor in an unknown way; save it again");
    return *value;
  }
  ElementType type(const PickleNode& tuple) const {
    const std::optional<ElementType> type = torch_element_type(tuple.items[2]->text);
    if (!type) {
      refuse("holds something of the unknown class " + in_quotes(tuple.items[2]->text));
    }
    return *type;
  }

  // Each storage: a pickle (key, device, class), the number of elements, the elements; then a
  // pickle of the views (key, key of the base storage, first, elements).
  void read_storages() {
    const ArchiveEntry& entry = member("storages");
    ByteCursor cursor(entry.bytes, name_);
    const std::int64_t storages = count(cursor);
    for (std::int64_t i = 0; i < storages; ++i) {
      const Pickle described = cursor.pickle();
      TorchStorage storage;
      const std::int64_t key = integer(described.root(), 0, 3);
      storage.type = type(described.root());
      storage.owner = entry.owner ? entry.owner : owner_;
      storage.big_endian = big_endian_;
      const auto elements = cursor.number<std::int64_t>();
      const auto item = static_cast<std::int64_t>(bits_of(storage.type) / 8);
      std::int64_t bytes = 0;
      if (elements < 0 || __builtin_mul_overflow(elements, item, &bytes)) {
        refuse("holds a storage of a size that makes no sense; download it again");
      }
      storage.bytes = cursor.take(static_cast<std::uint64_t>(bytes));
      storages_[key] = storage;
    }
    const Pickle views = cursor.pickle();
    for (const PickleNode* view : views.root().items) {
      const auto root = storages_.find(integer(*view, 1, 4));
      const std::int64_t first = integer(*view, 2, 4), elements = integer(*view, 3, 4);
      if (root == storages_.end()) refuse("holds a view of a storage that is not there");
      TorchStorage storage = root->second;
      const auto item = static_cast<std::int64_t>(bits_of(storage.type) / 8);
      const std::int64_t held = static_cast<std::int64_t>(storage.bytes.size()) / item;
      if (first < 0 || elements < 0 || first > held || elements > held - first) {
        refuse("holds a view beyond its storage; download it again");
      }
      storage.bytes = storage.bytes.subspan(static_cast<std::size_t>(first * item),
                                            static_cast<std::size_t>(elements * item));
      storages_[integer(*view, 0, 4)] = storage;
    }
  }

  // Each tensor: a pickle (key, key of the storage, class), int32 rank, 4 bytes, the sizes, the
  // strides, the offset (int64).
  void read_tensors() {
    ByteCursor cursor(member("tensors").bytes, name_);
    const std::int64_t tensors = count(cursor);
    for (std::int64_t i = 0; i < tensors; ++i) {
      const Pickle described = cursor.pickle();
      const std::int64_t key = integer(described.root(), 0, 3);
      const auto storage = storages_.find(integer(described.root(), 1, 3));
      const auto rank = cursor.number<std::int32_t>();
      cursor.take(4);
      if (rank < 0 || rank > kMaxTorchRank || storage == storages_.end() ||
          storage->second.type != type(described.root())) {
        refuse("holds a tensor that makes no sense; download it again");
      }
      std::vector<std::int64_t> dims(static_cast<std::size_t>(rank)), strides(dims.size());
      for (std::int64_t& d : dims) d = cursor.number<std::int64_t>();
      for (std::int64_t& s : strides) s = cursor.number<std::int64_t>();
      const auto offset = cursor.number<std::int64_t>();
      tensors_.emplace(key,
                       view_of(storage->second, dims, strides, offset, std::to_string(key), name_));
    }
  }

  // Tensors, and storages by themselves, are referred to by their key in decimal; tuples are
  // sources of modules.
  std::optional<StoredTensor> tensor_of(const PickleNode& node) const {
    const PickleNode& identifier = *node.items[0];
    if (identifier.kind != PickleNode::Kind::kText) return std::nullopt;
    const std::optional<std::int64_t> key = number_in<std::int64_t>(identifier.text);
    const auto found = key ? tensors_.find(*key) : tensors_.end();
    if (found != tensors_.end()) return found->second;
    if (key && storages_.contains(*key)) return std::nullopt;
    refuse("refers to the tensor " + in_quotes(identifier.text) +
           ", which is not there; download it again");
  }

  [[noreturn]] void refuse(const std::string& what) const {
    fail<InputError>("{}: {}", printable(name_), what);
  }

  std::map<std::string, ArchiveEntry> entries_;
  std::shared_ptr<const void> owner_;
  std::string name_;
  bool big_endian_ = false;
  std::map<std::int64_t, TorchStorage> storages_;
  std::map<std::int64_t, StoredTensor> tensors_;
};

}  // namespace

TensorFile read_torch_tar(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                          const std::string& name) {
  return TarFile(archive_entries(bytes, ArchiveKind::kTar, true, name), std::move(owner), name)
      .read();
}

}  // namespace rk
