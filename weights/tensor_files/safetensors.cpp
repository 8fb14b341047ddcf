#include "weights/tensor_files/safetensors.h"

#include "engine/base/error.h"
#include "engine/base/printable.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

namespace rk {
namespace {

constexpr std::uint64_t kMaxHeader = 100'000'000;
// Far above any real network; without these limits a header of 100 MB could take 1 GB here.
constexpr std::size_t kMaxNumbers = 64, kMaxText = std::size_t{64} << 10;
constexpr const char* kMetadataKey = "__metadata__";

struct Entry {
  std::string name;
  std::optional<std::string> dtype;
  std::optional<std::vector<std::uint64_t>> shape, offsets;
};

// Parses the header event by event: no JSON tree is built, and parsing stops at the first level of
// nesting that is not allowed.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;
  std::string problem;

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::kBefore: place_ = Place::kNames; return true;
      case Place::kValue:
        if (names_.back() == kMetadataKey) {
          place_ = Place::kMetadata;
        } else {
          place_ = Place::kTensor;
          entries.push_back({names_.back(), {}, {}, {}});
        }
        return true;
      default: return refuse("an object where none belongs");
    }
  }
  bool key(string_t& text) override {
    if (text.size() > kMaxText) return refuse("a name of more than 64 KiB");
    switch (place_) {
      case Place::kNames:
        if (names_.size() == kMaxTensors)
          return refuse(fmt::format("more than {} tensors", kMaxTensors));
        if (!seen_.insert(text).second) return refuse("the name " + in_quotes(text) + " twice");
        names_.push_back(text);
        place_ = Place::kValue;
        return true;
      case Place::kMetadata:
        if (metadata.contains(text)) return refuse("the metadata " + in_quotes(text) + " twice");
        if (metadata.size() == kMaxTensors)
          return refuse(fmt::format("more than {} metadata", kMaxTensors));
        key_ = text;
        return true;
      default: return field(text);
    }
  }
  bool end_object() override {
    if (place_ == Place::kTensor) {
      const Entry& entry = entries.back();
      if (!entry.dtype || !entry.shape || !entry.offsets) {
        return refuse("a tensor without dtype, shape or data_offsets");
      }
      if (entry.offsets->size() != 2) return refuse("data_offsets that are not two numbers");
    }
    if (place_ != Place::kNames) {
      place_ = Place::kNames;
    } else {
      place_ = Place::kAfter;
    }
    return true;
  }
  bool start_array(std::size_t) override {
    if (place_ == Place::kShape) {
      entries.back().shape.emplace();
    } else if (place_ == Place::kOffsets) {
      entries.back().offsets.emplace();
    } else {
      return refuse("an array where none belongs");
    }
    if (in_array_) return refuse("an array within an array");
    in_array_ = true;
    return true;
  }
  bool end_array() override {
    in_array_ = false;
    place_ = Place::kTensor;
    return true;
  }
  bool string(string_t& text) override {
    if (place_ == Place::kMetadata) {
      metadata[key_] = text;
      return true;
    }
    if (place_ != Place::kDtype) return refuse("text where none belongs");
    entries.back().dtype = text;
    place_ = Place::kTensor;
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (!in_array_) return refuse("a number where none belongs");
    Entry& entry = entries.back();
    std::vector<std::uint64_t>& values = place_ == Place::kShape ? *entry.shape : *entry.offsets;
    if (values.size() == kMaxNumbers)
      return refuse(fmt::format("more than {} numbers in a row", kMaxNumbers));
    values.push_back(value);
    return true;
  }
  bool number_integer(number_integer_t) override { return refuse("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    return refuse("a number that is not whole");
  }
  bool null() override {
    // The official reader takes it for no metadata.
    if (place_ != Place::kValue || names_.back() != kMetadataKey) return refuse("a null");
    place_ = Place::kNames;
    return true;
  }
  bool boolean(bool) override { return refuse("a boolean"); }
  bool binary(binary_t&) override { return refuse("binary data"); }
  bool parse_error(std::size_t at, const std::string&,
                   const nlohmann::detail::exception&) override {
    return refuse(fmt::format("no valid JSON (byte {})", at));
  }

 private:
  enum class Place : std::uint8_t {
    kBefore,
    kNames,     // in the outermost object
    kValue,     // after a name in the outermost object
    kMetadata,  // in the object of metadata
    kTensor,    // in the object of a tensor
    kDtype,
    kShape,
    kOffsets,
    kAfter,
  };

  bool field(const std::string& text) {
    Entry& entry = entries.back();
    bool twice = false;
    if (text == "dtype") {
      twice = entry.dtype.has_value();
      place_ = Place::kDtype;
    } else if (text == "shape") {
      twice = entry.shape.has_value();
      place_ = Place::kShape;
    } else if (text == "data_offsets") {
      twice = entry.offsets.has_value();
      place_ = Place::kOffsets;
    } else {
      return refuse("a tensor with the unknown field " + in_quotes(text));
    }
    return twice ? refuse("the field '" + text + "' twice") : true;
  }
  bool refuse(const std::string& what) {
    if (problem.empty()) problem = what;
    return false;
  }

  Place place_ = Place::kBefore;
  bool in_array_ = false;
  std::string key_;
  std::vector<std::string> names_;
  std::set<std::string> seen_;
};

[[noreturn]] void refuse_safetensors(const std::string& name, const std::string& what) {
  fail<InputError>("{}: as safetensors: {}; download or convert it again", printable(name), what);
}

// a * b; nullopt if it overflows.
std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}

// The tensor that an entry describes, as a view of `data`.
StoredTensor tensor_of(const Entry& entry, std::span<const std::byte> data,
                       const std::string& name) {
  const std::string label = "tensor " + in_quotes(entry.name);
  const std::optional<ElementType> type = element_type(*entry.dtype);
  if (!type) refuse_safetensors(name, label + " has the unknown dtype " + in_quotes(*entry.dtype));
  StoredTensor tensor;
  tensor.name = entry.name;
  tensor.type = *type;
  // A side of 0 makes the tensor empty, however long the other sides are.
  const bool empty = std::ranges::find(*entry.shape, 0U) != entry.shape->end();
  std::optional<std::uint64_t> bits = empty ? 0 : static_cast<std::uint64_t>(bits_of(*type));
  for (const std::uint64_t side : *entry.shape) {
    if (side > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) bits.reset();
    if (bits) bits = product(*bits, side);
    tensor.dims.push_back(static_cast<std::int64_t>(side));
  }
  if (!bits) refuse_safetensors(name, label + " claims more elements than can be counted");
  if (*bits % 8 != 0) refuse_safetensors(name, label + " does not end at a whole byte");
  const std::uint64_t first = (*entry.offsets)[0], last = (*entry.offsets)[1];
  if (last < first || last > data.size() || last - first != *bits / 8) {
    refuse_safetensors(name, fmt::format("{} of {} bytes claims bytes {} to {} of {}", label,
                                         *bits / 8, first, last, data.size()));
  }
  tensor.bytes = data.subspan(first, last - first);
  return tensor;
}

}  // namespace

TensorFile read_safetensors(std::span<const std::byte> bytes,
                            const std::shared_ptr<const void>& owner, const std::string& name) {
  std::uint64_t header = 0;
  if (bytes.size() < sizeof(header)) refuse_safetensors(name, "shorter than its first number");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header > kMaxHeader) refuse_safetensors(name, fmt::format("a header of {} bytes", header));
  if (header > bytes.size() - sizeof(header)) {
    refuse_safetensors(name, fmt::format("a header of {} bytes in a file of {}: it was cut off",
                                         header, bytes.size()));
  }
  HeaderReader reader;
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + sizeof(header);
  // The library takes a NUL for the end.
  const bool cut = std::memchr(text, 0, header) != nullptr;
  if (cut || !nlohmann::json::sax_parse(text, text + header, &reader)) {
    refuse_safetensors(
        name, "its header holds " +
                  (reader.problem.empty() ? std::string("no valid JSON") : reader.problem));
  }
  TensorFile file;
  file.path = name;
  file.kind = TensorFile::Kind::kSafetensors;
  file.format = "safetensors";
  file.metadata = std::move(reader.metadata);
  const std::span<const std::byte> data = bytes.subspan(sizeof(header) + header);
  std::vector<const Entry*> entries;
  for (const Entry& entry : reader.entries) entries.push_back(&entry);
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry* a, const Entry* b) { return *a->offsets < *b->offsets; });
  std::uint64_t end = 0;
  for (const Entry* described : entries) {
    const Entry& entry = *described;
    if ((*entry.offsets)[0] != end) {
      refuse_safetensors(
          name, fmt::format("tensor '{}' begins at byte {} of the data, the one before it ends "
                            "at {}",
                            printable(entry.name), (*entry.offsets)[0], end));
    }
    file.tensors.push_back(tensor_of(entry, data, name));
    file.tensors.back().owner = owner;
    end = (*entry.offsets)[1];
  }
  if (end != data.size()) {
    refuse_safetensors(
        name,
        fmt::format("its tensors end at byte {} of the data, which are {} long", end, data.size()));
  }
  return file;
}

std::vector<std::byte> write_safetensors(std::vector<NamedValues> tensors,
                                         const std::map<std::string, std::string>& metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const NamedValues& a, const NamedValues& b) {
    return a.type != b.type ? a.type > b.type : a.name < b.name;
  });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) {
    for (const auto& [key, value] : metadata) header[kMetadataKey][key] = value;
  }
  std::size_t bytes = 0;
  for (const NamedValues& tensor : tensors) {
    const std::size_t end = bytes + tensor.values.size();
    header[tensor.name] = {
        {"dtype", name_of(tensor.type)}, {"shape", tensor.dims}, {"data_offsets", {bytes, end}}};
    bytes = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  std::vector<std::byte> file(sizeof(length) + text.size() + bytes);
  std::memcpy(file.data(), &length, sizeof(length));
  std::memcpy(file.data() + sizeof(length), text.data(), text.size());
  std::byte* at = file.data() + sizeof(length) + text.size();
  for (const NamedValues& tensor : tensors) {
    at = std::copy(tensor.values.begin(), tensor.values.end(), at);
  }
  return file;
}

}  // namespace rk
