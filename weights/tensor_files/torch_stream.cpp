#include "engine/base/printable.h"
#include "engine/base/text_of.h"
#include "weights/tensor_files/byte_cursor.h"
#include "weights/tensor_files/file_kind.h"
#include "weights/tensor_files/torch_file.h"
#include "weights/tensor_files/torch_pickle.h"

#include <algorithm>
#include <string_view>

namespace rk {
namespace {

// LONG1 of ten bytes: 0x1950a86a20f9469cfc6c.
constexpr std::string_view kMagic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
constexpr std::int64_t kProtocol = 1001;

// A storage as a tensor names it: ("storage", class, key, device, elements, view), where the view
// is None or (key, offset, elements).
struct StorageName {
  std::string key;
  std::optional<ElementType> type;  // null: one that weights never have
  std::uint64_t item = 0;           // bytes of an element
  std::int64_t elements = 0;
  std::int64_t first = 0, count = 0;  // of the view
};

// Of what is stored beside the pickle, its kind: "storage" or, in a whole pickled model, "module",
// a class with its source: ("module", class, file, source).
std::string_view first_word(const PickleNode& node) {
  const std::vector<const PickleNode*>& parts = node.items[0]->items;
  if (parts.empty() || parts[0]->kind != PickleNode::Kind::kText) return "";
  return parts[0]->text;
}

StorageName storage_name(const PickleNode& node, const std::string& name) {
  const std::vector<const PickleNode*>& parts = node.items[0]->items;
  StorageName out;
  bool sound = parts.size() >= 5 && first_word(node) == "storage" &&
               parts[2]->kind == PickleNode::Kind::kText &&
               parts[1]->kind == PickleNode::Kind::kGlobal;
  if (!sound) refuse(name, "refers to a storage in an unknown way; save it again");
  out.key = parts[2]->text;
  const std::optional<std::size_t> item = torch_item_bytes(parts[1]->text);
  const std::optional<std::int64_t> elements = pickled_integer(*parts[4]);
  sound = item && elements && *elements >= 0;
  if (sound) {
    out.type = torch_element_type(parts[1]->text);
    out.item = *item;
    out.elements = out.count = *elements;
  }
  if (sound && parts.size() >= 6 && parts[5]->kind == PickleNode::Kind::kTuple) {
    const std::vector<const PickleNode*>& view = parts[5]->items;
    const std::optional<std::int64_t> first =
        view.size() == 3 ? pickled_integer(*view[1]) : std::nullopt;
    const std::optional<std::int64_t> count =
        view.size() == 3 ? pickled_integer(*view[2]) : std::nullopt;
    sound = first && count && *first >= 0 && *count >= 0 && *first <= out.elements &&
            *count <= out.elements - *first;
    if (sound) {
      out.first = *first;
      out.count = *count;
    }
  }
  if (!sound) {
    refuse(name, "storage " + in_quotes(out.key) + " of class " + in_quotes(parts[1]->text) +
                     " makes no sense; save the weights alone");
  }
  return out;
}

}  // namespace

bool is_torch_stream(std::span<const std::byte> bytes) {
  std::string_view text = text_of(bytes);
  if (!is_pickle(text)) return false;
  text.remove_prefix(2);
  // From protocol 4 on, a frame opcode with a length comes first.
  if (text.starts_with('\x95')) text.remove_prefix(std::min<std::size_t>(9, text.size()));
  return text.starts_with(kMagic);
}

TensorFile read_torch_stream(std::span<const std::byte> bytes,
                             const std::shared_ptr<const void>& owner, const std::string& name) {
  ByteCursor cursor(bytes, name);
  cursor.pickle();  // the magic number
  if (const Pickle protocol = cursor.pickle(); protocol.root().integer != kProtocol) {
    refuse(name, fmt::format("is of the protocol {}, {} is known; save it again",
                             protocol.root().integer, kProtocol));
  }
  const bool big_endian = is_big_endian(cursor.pickle());
  const Pickle object = cursor.pickle();
  const Pickle keys = cursor.pickle();

  // Only the references to a storage state its element type.
  std::map<std::string, StorageName> named;
  for (const PickleNode* node : object.stored()) {
    if (first_word(*node) == "module") continue;
    const StorageName storage = storage_name(*node, name);
    const StorageName& first = named.emplace(storage.key, storage).first->second;
    if (first.type != storage.type || first.item != storage.item ||
        first.elements != storage.elements) {
      refuse(name, "storage " + in_quotes(storage.key) + " has two types; save it again");
    }
  }
  std::map<std::string, std::span<const std::byte>> held;
  for (const PickleNode* key : keys.root().items) {
    const auto storage = named.find(key->text);
    if (key->kind != PickleNode::Kind::kText || storage == named.end()) {
      refuse(name, "holds a storage that nothing refers to; save it again");
    }
    const auto count = cursor.number<std::int64_t>();
    if (count != storage->second.elements) {
      refuse(name, fmt::format("storage '{}' holds {} elements, {} are expected; download it again",
                               printable(key->text), count, storage->second.elements));
    }
    std::uint64_t size = 0;
    if (__builtin_mul_overflow(static_cast<std::uint64_t>(count), storage->second.item, &size)) {
      refuse(name, "storage " + in_quotes(key->text) + " claims more than can be counted");
    }
    held[key->text] = cursor.take(size);
  }
  if (held.size() != named.size()) {
    refuse(name,
           fmt::format("holds {} of {} storages; download it again", held.size(), named.size()));
  }

  TorchStorages storages;
  storages.find = [&](const PickleNode& node) -> std::optional<TorchStorage> {
    const StorageName view = storage_name(node, name);
    if (!view.type) return std::nullopt;
    const std::span<const std::byte> values =
        held.at(view.key).subspan(static_cast<std::size_t>(view.first) * view.item,
                                  static_cast<std::size_t>(view.count) * view.item);
    return TorchStorage{*view.type, values, owner, big_endian};
  };
  TensorFile file;
  file.path = name;
  file.kind = TensorFile::Kind::kTorch;
  file.format = "PyTorch pickle stream";
  collect_tensors(object, storages, file);
  return file;
}

}  // namespace rk
