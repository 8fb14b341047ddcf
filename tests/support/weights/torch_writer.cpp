#include "tests/support/weights/torch_writer.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace rk {
namespace {

std::string torch_class(ElementType type, const char* what) {
  const char* name = nullptr;
  switch (type) {
    case ElementType::kF64: name = "Double"; break;
    case ElementType::kF16: name = "Half"; break;
    case ElementType::kBf16: name = "BFloat16"; break;
    case ElementType::kI64: name = "Long"; break;
    case ElementType::kI32: name = "Int"; break;
    case ElementType::kI16: name = "Short"; break;
    case ElementType::kI8: name = "Char"; break;
    case ElementType::kU8: name = "Byte"; break;
    case ElementType::kBool: name = "Bool"; break;
    default: name = "Float"; break;
  }
  return std::string(name) + what;
}

std::int64_t elements(const TorchContent::Storage& storage) {
  return static_cast<std::int64_t>(storage.bytes.size()) / (bits_of(storage.type) / 8);
}

void identifier(PickleWriter& out, const TorchContent::Storage& storage, bool view) {
  out.raw("(").text("storage").global("torch", torch_class(storage.type, "Storage"));
  out.text(storage.key).text("cpu").integer(elements(storage));
  if (view) out.raw("N");
  out.raw("tQ");
}

// The pickled object: a dictionary of tensors, each a _rebuild_tensor_v2 call on its storage.
std::string object(const TorchContent& content, bool view) {
  PickleWriter out;
  out.proto();
  if (!content.wrapper.empty()) out.raw("}").text(content.wrapper);
  out.ordered_dict().raw("(");
  for (const TorchContent::Tensor& tensor : content.tensors) {
    out.text(tensor.name).global("torch._utils", "_rebuild_tensor_v2").raw("(");
    identifier(out, content.storages[tensor.storage], view);
    out.integer(tensor.offset).integers(tensor.dims).integers(tensor.strides).raw("\x89");
    out.ordered_dict().raw("tR");
  }
  for (const auto& [name, opcodes] : content.further) out.text(name).raw(opcodes);
  out.raw("u");
  // state_dict() returns a dictionary with _metadata as an attribute.
  out.raw("}").text("_metadata").ordered_dict().raw("sb");
  if (!content.wrapper.empty()) out.raw("s");
  return out.stop().bytes();
}

std::string written(const ArchiveMembers& members, bool zip, bool deflate) {
  std::size_t room = 1 << 20;
  for (const auto& [name, bytes] : members) room += 4096 + name.size() + bytes.size();
  std::string out(room, '\0');
  std::size_t used = 0;
  archive* a = archive_write_new();
  if (zip) {
    archive_write_set_format_zip(a);
    archive_write_set_options(
        a, deflate ? "zip:compression=deflate,compression-level=1" : "zip:compression=store");
  } else {
    archive_write_set_format_ustar(a);
  }
  archive_write_set_bytes_in_last_block(a, 1);
  bool good = archive_write_open_memory(a, out.data(), out.size(), &used) == ARCHIVE_OK;
  for (const auto& [name, bytes] : members) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(bytes.size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    good = good && archive_write_header(a, entry) == ARCHIVE_OK;
    good = good && (bytes.empty() || archive_write_data(a, bytes.data(), bytes.size()) ==
                                         static_cast<la_ssize_t>(bytes.size()));
    archive_entry_free(entry);
  }
  good = archive_write_close(a) == ARCHIVE_OK && good;
  archive_write_free(a);
  if (!good) throw std::runtime_error("the archive could not be written");
  out.resize(used);
  out.shrink_to_fit();
  return out;
}

std::string pickled(const PickleWriter& inner) {
  PickleWriter out;
  return out.proto().raw(inner.bytes()).stop().bytes();
}

std::string system_info(bool big_endian) {
  PickleWriter out;
  out.raw("}(").text("protocol_version").integer(1001).text("little_endian");
  out.raw(big_endian ? "\x89" : "\x88").raw("u");
  return pickled(out);
}

}  // namespace

PickleWriter& PickleWriter::raw(std::string_view bytes) {
  bytes_ += bytes;
  return *this;
}

PickleWriter& PickleWriter::global(const std::string& module, const std::string& name) {
  return raw("c").raw(module).raw("\n").raw(name).raw("\n");
}

PickleWriter& PickleWriter::text(const std::string& value) {
  return raw("X").raw(little(static_cast<std::uint32_t>(value.size()))).raw(value);
}

PickleWriter& PickleWriter::integer(std::int64_t value) {
  if (value >= 0 && value < 256) return raw("K").raw(little(static_cast<std::uint8_t>(value)));
  if (value == static_cast<std::int32_t>(value)) {
    return raw("J").raw(little(static_cast<std::int32_t>(value)));
  }
  return raw("\x8a\x08").raw(little(value));
}

PickleWriter& PickleWriter::integers(const std::vector<std::int64_t>& values) {
  raw("(");
  for (const std::int64_t v : values) integer(v);
  return raw("t");
}

PickleWriter& PickleWriter::ordered_dict() {
  return global("collections", "OrderedDict").raw(")R");
}

void add_tensor(TorchContent& content, const std::string& name,
                const std::vector<std::int64_t>& dims, const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  std::vector<std::int64_t> strides(dims.size(), 1);
  for (std::size_t axis = dims.size(); axis-- > 1;) {
    strides[axis - 1] = strides[axis] * dims[axis];
  }
  content.tensors.push_back({name, content.storages.size(), dims, strides, 0});
  content.storages.push_back(
      {std::to_string(content.storages.size()), ElementType::kF32, std::move(bytes)});
}

void add_counter(TorchContent& content, const std::string& name, std::int64_t value) {
  content.tensors.push_back({name, content.storages.size(), {}, {}, 0});
  content.storages.push_back(
      {std::to_string(content.storages.size()), ElementType::kI64, little(value)});
}

std::string zip_of(const ArchiveMembers& members, bool deflate) {
  return written(members, true, deflate);
}

std::string zip_of_copies(const std::string& bytes, const std::vector<std::string>& names) {
  const std::string one = zip_of({{names.front(), bytes}}, true);
  const std::size_t directory = one.find("PK\x01\x02"), end = one.find("PK\x05\x06");
  std::string records, entries;
  for (const std::string& name : names) {
    std::string record = one.substr(0, directory), entry = one.substr(directory, end - directory);
    record.replace(30, name.size(), name);  // the name follows each header's fixed part
    entry.replace(46, name.size(), name);
    entry.replace(42, 4, little(static_cast<std::uint32_t>(records.size())));
    records += record;
    entries += entry;
  }
  const auto count = static_cast<std::uint16_t>(names.size());
  std::string last = one.substr(end);
  last.replace(8, 8,
               little(count) + little(count) + little(static_cast<std::uint32_t>(entries.size())));
  last.replace(16, 4, little(static_cast<std::uint32_t>(records.size())));
  return records + entries + last;
}

std::string tar_of(const ArchiveMembers& members) { return written(members, false, false); }

ArchiveMembers torch_zip_members(const TorchContent& content, const std::string& root) {
  ArchiveMembers members = {{root + "/data.pkl", object(content, false)}};
  if (content.big_endian) members.emplace_back(root + "/byteorder", "big");
  for (const TorchContent::Storage& storage : content.storages) {
    members.emplace_back(root + "/data/" + storage.key, storage.bytes);
  }
  members.emplace_back(root + "/version", "3\n");
  return members;
}

std::string torch_zip(const TorchContent& content) { return zip_of(torch_zip_members(content)); }

std::string torch_stream(const TorchContent& content) {
  PickleWriter magic, protocol, keys;
  magic.raw(std::string("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 12));
  protocol.raw("M").raw(little(std::uint16_t{1001}));
  keys.raw("](");
  std::string data;
  // In the order of the list of keys, which is not the tensors' order.
  for (std::size_t i = content.storages.size(); i-- > 0;) {
    const bool used = std::any_of(content.tensors.begin(), content.tensors.end(),
                                  [&](const auto& tensor) { return tensor.storage == i; });
    if (!used) continue;
    keys.text(content.storages[i].key);
    data += little(elements(content.storages[i])) + content.storages[i].bytes;
  }
  keys.raw("e");
  return pickled(magic) + pickled(protocol) + system_info(content.big_endian) +
         object(content, true) + pickled(keys) + data;
}

std::string torch_tar(const TorchContent& content) {
  constexpr std::int64_t kFirstTensor = 1'000'000'000'000;  // keys are addresses
  const auto count = [](std::size_t n) {
    PickleWriter out;
    return pickled(out.integer(static_cast<std::int64_t>(n)));
  };
  std::string storages = count(content.storages.size());
  for (const TorchContent::Storage& storage : content.storages) {
    PickleWriter described;
    described.integer(std::stoll(storage.key)).text("cpu");
    described.global("torch", torch_class(storage.type, "Storage")).raw("\x87");
    storages += pickled(described) + little(elements(storage)) + storage.bytes;
  }
  // Every second tensor lies in a view of its storage, which begins halfway to the tensor.
  constexpr std::int64_t kFirstView = 500'000'000'000;
  const auto in_view = [](std::size_t i) { return i % 2 == 1; };
  const auto view_begin = [&](std::size_t i) {
    return in_view(i) ? (content.tensors[i].offset + 1) / 2 : 0;
  };
  PickleWriter views;
  views.raw("](");
  for (std::size_t i = 0; i < content.tensors.size(); ++i) {
    if (!in_view(i)) continue;
    const TorchContent::Storage& storage = content.storages[content.tensors[i].storage];
    views.integers({kFirstView + static_cast<std::int64_t>(i), std::stoll(storage.key),
                    view_begin(i), elements(storage) - view_begin(i)});
  }
  storages += pickled(views.raw("e"));

  std::string tensors = count(content.tensors.size());
  PickleWriter out;
  out.proto();
  if (!content.wrapper.empty()) out.raw("}").text(content.wrapper);
  out.ordered_dict().raw("(");
  for (std::size_t i = 0; i < content.tensors.size(); ++i) {
    const TorchContent::Tensor& tensor = content.tensors[i];
    const TorchContent::Storage& storage = content.storages[tensor.storage];
    const std::int64_t key = kFirstTensor + static_cast<std::int64_t>(i);
    PickleWriter described;
    described.integer(key).integer(in_view(i) ? kFirstView + static_cast<std::int64_t>(i)
                                              : std::stoll(storage.key));
    described.global("torch", torch_class(storage.type, "Tensor")).raw("\x87");
    tensors += pickled(described) + little(static_cast<std::int32_t>(tensor.dims.size())) +
               std::string(4, '\0');
    for (const std::int64_t d : tensor.dims) tensors += little(d);
    for (const std::int64_t s : tensor.strides) tensors += little(s);
    tensors += little(tensor.offset - view_begin(i));
    out.text(tensor.name).text(std::to_string(key)).raw("Q");
  }
  for (const auto& [name, opcodes] : content.further) out.text(name).raw(opcodes);
  out.raw("u");
  if (!content.wrapper.empty()) out.raw("s");
  return tar_of({{"sys_info", system_info(content.big_endian)},
                 {"pickle", out.stop().bytes()},
                 {"tensors", tensors},
                 {"storages", storages}});
}

}  // namespace rk
