#include "engine/base/printable.h"
#include "engine/base/text_of.h"
#include "weights/tensor_files/torch_file.h"
#include "weights/tensor_files/torch_pickle.h"

namespace rk {
namespace {

using Entries = std::map<std::string, ArchiveEntry>;

// The prefix "<root>/" of data.pkl.
std::string root_of(const Entries& entries, const std::string& name) {
  for (const auto& [path, entry] : entries) {
    const std::size_t slash = path.rfind('/');
    const std::string root = slash == std::string::npos ? "" : path.substr(0, slash + 1);
    if (path == root + "constants.pkl" && entries.contains(root + "data.pkl")) {
      refuse(name,
             "this is a TorchScript archive, which holds a program; save its weights instead: "
             "torch.save(torch.jit.load(FILE).state_dict(), OUT)");
    }
  }
  std::optional<std::string> found;
  for (const auto& [path, entry] : entries) {
    if (path != "data.pkl" && !path.ends_with("/data.pkl")) continue;
    if (found) {
      refuse(name, fmt::format("holds two files of torch.save(), {} and {}; give each by itself",
                               in_quotes(*found + "data.pkl"), in_quotes(path)));
    }
    found = path.substr(0, path.size() - std::string_view("data.pkl").size());
  }
  if (found) return *found;
  refuse(name, "a zip archive without data.pkl, so none of torch.save(); give a file of weights");
}

}  // namespace

TensorFile read_torch_zip(const Entries& entries, const std::shared_ptr<const void>& owner,
                          const std::string& name) {
  const std::string root = root_of(entries, name);
  bool big_endian = false;
  if (const auto order = entries.find(root + "byteorder"); order != entries.end()) {
    const std::string text(text_of(order->second.bytes));
    if (text != "little" && text != "big") {
      refuse(name, "its byte order is " + in_quotes(text) + "; save it again");
    }
    big_endian = text == "big";
  }

  TorchStorages storages;
  storages.find = [&](const PickleNode& node) -> std::optional<TorchStorage> {
    // ("storage", class, key, device, elements)
    const std::vector<const PickleNode*>& parts = node.items[0]->items;
    const bool sound = parts.size() >= 5 && parts[2]->kind == PickleNode::Kind::kText &&
                       parts[1]->kind == PickleNode::Kind::kGlobal;
    if (!sound) refuse(name, "refers to a storage in an unknown way; save it again");
    const std::string& key = parts[2]->text;
    const std::optional<ElementType> type = torch_element_type(parts[1]->text);
    const std::optional<std::int64_t> elements = pickled_integer(*parts[4]);
    if (!elements || *elements < 0) {
      refuse(name, "storage " + in_quotes(key) + " has no number of elements; save it again");
    }
    if (!type) return std::nullopt;
    const auto record = entries.find(root + "data/" + key);
    if (record == entries.end()) {
      refuse(name, "storage " + in_quotes(key) + " is missing; download it again");
    }
    TorchStorage storage;
    storage.type = *type;
    storage.bytes = record->second.bytes;
    storage.owner = record->second.owner ? record->second.owner : owner;
    storage.big_endian = big_endian;
    const auto item = static_cast<std::uint64_t>(bits_of(*type) / 8);
    if (storage.bytes.size() % item != 0 ||
        storage.bytes.size() / item != static_cast<std::uint64_t>(*elements)) {
      refuse(name, fmt::format("storage '{}' has {} bytes for {} elements of {}; download it again",
                               printable(key), storage.bytes.size(), *elements, item));
    }
    return storage;
  };

  TensorFile file;
  file.path = name;
  file.kind = TensorFile::Kind::kTorch;
  file.format = "PyTorch zip archive";
  collect_tensors(Pickle(entries.at(root + "data.pkl").bytes, name), storages, file);
  return file;
}

}  // namespace rk
