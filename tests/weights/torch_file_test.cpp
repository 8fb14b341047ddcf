// Reading PyTorch's files: random tensors in all three containers must equal what plain loops give.
#include "engine/base/error.h"
#include "engine/base/random.h"
#include "engine/base/shape.h"
#include "tests/support/messages.h"
#include "tests/support/random_seed.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/weights/torch_writer.h"
#include "weights/tensor_files/tensor_file.h"

#include <cmath>
#include <cstring>
#include <fstream>

namespace rk {
namespace {

constexpr std::array<ElementType, 10> kTypes = {
    ElementType::kF32, ElementType::kF64, ElementType::kF16, ElementType::kBf16,
    ElementType::kI64, ElementType::kI32, ElementType::kI16, ElementType::kI8,
    ElementType::kU8,  ElementType::kBool};

// sign 2^(e - bias) (1 + fraction / 2^bits), computed as written.
double plain_half(std::uint16_t bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
  const double fraction =
      std::ldexp(static_cast<double>(bits & ((1 << fraction_bits) - 1)), -fraction_bits);
  const double size =
      exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
  return (bits & 0x8000) != 0 ? -size : size;
}

template <class T> std::string number_bytes(T value, bool big_endian) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  if (big_endian) std::reverse(bytes.begin(), bytes.end());
  return bytes;
}

// Draws an element of `type`; returns its bytes and its value.
std::pair<std::string, double> drawn_element(ElementType type, bool big, CounterRandom& random) {
  const auto small = static_cast<int>(random.below(200));
  switch (type) {
    case ElementType::kF32: {
      const auto value = static_cast<float>(random.normal());
      return {number_bytes(value, big), static_cast<double>(value)};
    }
    case ElementType::kF64: {
      const double value = random.normal();
      return {number_bytes(value, big), static_cast<double>(static_cast<float>(value))};
    }
    case ElementType::kF16:
    case ElementType::kBf16: {
      const int exponent_bits = type == ElementType::kF16 ? 5 : 8;
      for (;;) {
        const auto bits = static_cast<std::uint16_t>(random.below(1 << 16));
        // Only finite values are drawn: NaN would not equal itself.
        const int largest = (1 << exponent_bits) - 1;
        if ((bits >> (15 - exponent_bits) & largest) == largest) continue;
        return {number_bytes(bits, big), plain_half(bits, exponent_bits)};
      }
    }
    case ElementType::kI64: return {number_bytes(std::int64_t{small} - 100, big), small - 100.0};
    case ElementType::kI32: return {number_bytes(std::int32_t{small} - 100, big), small - 100.0};
    case ElementType::kI16:
      return {number_bytes(static_cast<std::int16_t>(small - 100), big), small - 100.0};
    case ElementType::kI8:
      return {number_bytes(static_cast<std::int8_t>(small - 100), big), small - 100.0};
    case ElementType::kBool:
      return {number_bytes(static_cast<std::uint8_t>(small % 2), big), small % 2};
    default: return {number_bytes(static_cast<std::uint8_t>(small), big), small};
  }
}

struct DrawnFile {
  TorchContent content;
  std::vector<std::vector<double>> values;  // of each tensor, in C order
};

DrawnFile draw_file(CounterRandom& random) {
  DrawnFile drawn;
  drawn.content.big_endian = random.below(4) == 0;
  std::vector<std::vector<double>> held;
  const std::int64_t storages = 1 + random.below(5);
  for (std::int64_t s = 0; s < storages; ++s) {
    TorchContent::Storage storage;
    storage.key = std::to_string(s * 7);
    storage.type = kTypes[static_cast<std::size_t>(random.below(kTypes.size()))];
    held.emplace_back();
    for (std::int64_t i = random.below(300); i > 0; --i) {
      const auto [bytes, value] = drawn_element(storage.type, drawn.content.big_endian, random);
      storage.bytes += bytes;
      held.back().push_back(value);
    }
    drawn.content.storages.push_back(storage);
  }
  for (std::int64_t t = 1 + random.below(8); t > 0; --t) {
    TorchContent::Tensor tensor;
    tensor.name = fmt::format("layer{}.weight", t);
    tensor.storage = static_cast<std::size_t>(random.below(storages));
    const std::vector<double>& from = held[tensor.storage];
    // Axes in any order over a dense block, sometimes with gaps: as in views, transposed and
    // channels-last tensors.
    std::int64_t room = static_cast<std::int64_t>(from.size());
    std::vector<std::pair<std::int64_t, std::int64_t>> axes;  // side, stride
    std::int64_t stride = 1 + random.below(2);
    for (std::int64_t axis = random.below(5); axis > 0; --axis) {
      const std::int64_t most = room / std::max<std::int64_t>(stride, 1);
      const std::int64_t side = most < 1 ? 0 : 1 + random.below(std::min<std::int64_t>(most, 6));
      axes.emplace_back(side, stride);
      stride *= std::max<std::int64_t>(side, 1);
    }
    for (std::size_t i = axes.size(); i > 1; --i) {
      std::swap(axes[i - 1], axes[static_cast<std::size_t>(random.below(static_cast<int>(i)))]);
    }
    std::int64_t last = 0, count = 1;
    for (const auto& [side, step] : axes) {
      tensor.dims.push_back(side);
      tensor.strides.push_back(step);
      last += std::max<std::int64_t>(side - 1, 0) * step;
      count *= side;
    }
    if (last >= room && count > 0) continue;
    tensor.offset = count == 0 ? 0 : random.below(room - last);
    drawn.values.emplace_back();
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t rest = i, at = tensor.offset;
      for (std::size_t axis = axes.size(); axis-- > 0;) {
        at += rest % axes[axis].first * axes[axis].second;
        rest /= axes[axis].first;
      }
      drawn.values.back().push_back(from[static_cast<std::size_t>(at)]);
    }
    drawn.content.tensors.push_back(tensor);
  }
  if (random.below(3) == 0) drawn.content.wrapper = "state_dict";
  return drawn;
}

void expect_read(const DrawnFile& drawn, const std::string& bytes, const std::string& path,
                 const char* format) {
  std::ofstream(path, std::ios::binary) << bytes;
  const TensorFile file = read_tensor_file(path);
  EXPECT_TRUE(holds(file.format, format));
  EXPECT_EQ(file.bytes, bytes.size());
  ASSERT_EQ(file.tensors.size(), drawn.content.tensors.size());
  for (std::size_t t = 0; t < file.tensors.size(); ++t) {
    const StoredTensor& tensor = file.tensors[t];
    const TorchContent::Tensor& wanted = drawn.content.tensors[t];
    EXPECT_EQ(tensor.name, (drawn.content.wrapper.empty() ? "" : "state_dict/") + wanted.name);
    EXPECT_EQ(tensor.dims, wanted.dims);
    EXPECT_EQ(tensor.type, drawn.content.storages[wanted.storage].type);
    std::vector<double> values;
    if (is_real(tensor.type)) {
      std::vector<float> space;
      for (const float v : float_values(tensor, space)) values.push_back(static_cast<double>(v));
    } else {
      for (const std::int64_t v : integer_values(tensor)) values.push_back(static_cast<double>(v));
    }
    EXPECT_EQ(values, drawn.values[t]) << tensor.name << ' ' << shape_text(tensor.dims);
  }
}

TEST(TorchFile, DrawnTensorsInEveryContainer) {
  const TemporaryFolder folder;
  const std::string path = folder.in("drawn.pth");
  CounterRandom random(random_seed(), 0, 0);
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE(testing::Message() << "case " << i);
    const DrawnFile drawn = draw_file(random);
    expect_read(drawn, torch_zip(drawn.content), path, "zip");
    expect_read(drawn, zip_of(torch_zip_members(drawn.content, "a b/ü"), true), path, "zip");
    expect_read(drawn, torch_stream(drawn.content), path, "stream");
    expect_read(drawn, torch_tar(drawn.content), path, "tar");
    if (testing::Test::HasFailure()) return;
  }
}

// Programs that write names in UTF-8, as PyTorch and numpy, say so in a bit of each entry's header,
// which the library obeys.
TEST(TorchFile, NamesInUtf8) {
  TorchContent content;
  add_tensor(content, "weight", {2}, {1.5F, -2.0F});
  std::string bytes = zip_of(torch_zip_members(content, "größe ☃"));
  constexpr char kUtf8 = 8;  // in the second byte of the flags
  for (const auto& [signature, flags] :
       {std::pair<std::string_view, std::size_t>{"PK\x03\x04", 6}, {"PK\x01\x02", 8}}) {
    for (std::size_t at = bytes.find(signature); at != std::string::npos;
         at = bytes.find(signature, at + 1)) {
      bytes[at + flags + 1] = static_cast<char>(bytes[at + flags + 1] | kUtf8);
    }
  }
  const TemporaryFolder folder;
  folder.write("t.pth", bytes);
  EXPECT_EQ(read_tensor_file(folder.in("t.pth")).tensors.size(), 1U);
}

// Files that PyTorch itself wrote or has read.
TEST(TorchFile, WhatPyTorchWrote) {
  const std::string fixtures = RK_TEST_GOLDEN "/fixtures/";
  for (const char* name : {"s_zip.pth", "s_legacy.pth"}) {
    const TensorFile file = read_tensor_file(fixtures + name);
    ASSERT_EQ(file.tensors.size(), 3U) << name;
    EXPECT_EQ(file.tensors[0].name, "conv1.weight");
    EXPECT_EQ(file.tensors[0].dims, (std::vector<std::int64_t>{64, 3, 7, 7}));
    EXPECT_EQ(file.tensors[2].name, "bn1.num_batches_tracked");
    EXPECT_EQ(integer_values(file.tensors[2]), std::vector<std::int64_t>{0});
    EXPECT_TRUE(file.notes.empty());
  }
  // The two hold the same numbers.
  const TensorFile zip = read_tensor_file(fixtures + "s_zip.pth");
  const TensorFile stream = read_tensor_file(fixtures + "s_legacy.pth");
  EXPECT_EQ(contiguous_bytes(zip.tensors[0]), contiguous_bytes(stream.tensors[0]));
  const TensorFile tar = read_tensor_file(fixtures + "old_tar.pth");
  ASSERT_EQ(tar.tensors.size(), 4U);
  EXPECT_EQ(tar.tensors[3].name, "fc.weight");
  EXPECT_FALSE(tar.tensors[3].contiguous()) << "a transposed one";
}

// Files of Python 2, where an OrderedDict is a call with a list of lists [name, tensor].
TEST(TorchFile, DictionariesOfPython2) {
  const auto call = [](const std::vector<std::pair<std::string, std::string>>& entries) {
    PickleWriter out;
    out.global("collections", "OrderedDict").raw("](");
    for (const auto& [name, opcodes] : entries) out.raw("](").text(name).raw(opcodes).raw("e");
    return out.raw("e\x85R").bytes();
  };
  PickleWriter tensor;
  tensor.global("torch._utils", "_rebuild_tensor_v2").raw("((").text("storage");
  tensor.global("torch", "FloatStorage").text("0").text("cpu").integer(2).raw("tQ");
  tensor.integer(0).integers({2}).integers({1}).raw("\x89").raw(call({})).raw("tR");
  TorchContent content;
  add_tensor(content, "x", {2}, {1.5F, -2.0F});
  const TemporaryFolder folder;
  const auto names = [&](const std::string& opcodes) {
    PickleWriter object;
    ArchiveMembers members = torch_zip_members(content);
    members[0].second = object.proto().raw(opcodes).stop().bytes();
    folder.write("py2.pth", zip_of(members));
    std::vector<std::string> all;
    for (const auto& t : read_tensor_file(folder.in("py2.pth")).tensors) {
      all.push_back(t.name);
    }
    return all;
  };
  const std::string state = call({{"weight", tensor.bytes()}, {"bias", tensor.bytes()}});
  EXPECT_EQ(names(state), (std::vector<std::string>{"weight", "bias"}));
  EXPECT_EQ(names(call({{"state_dict", state}, {"epoch", "N"}})),
            (std::vector<std::string>{"state_dict/weight", "state_dict/bias"}));
  // A model that was pickled whole: an object whose state holds its parts.
  PickleWriter model;
  model.global("net", "Net").raw(")\x81}(").text("_parameters").raw(state).text("_modules");
  model.raw(call({})).raw("ub");
  EXPECT_EQ(names(model.bytes()), (std::vector<std::string>{"weight", "bias"}));
  // Texts of more than 255 bytes, dictionaries and lists of one item, keys that are numbers.
  const std::string longest(300, 'n');
  const auto long_text = [&](std::int32_t size) { return "T" + little(size) + longest; };
  EXPECT_EQ(names("(" + long_text(300) + tensor.bytes() + "d"), std::vector<std::string>{longest});
  EXPECT_TRUE(holds(message_of<InputError>([&] { names("(" + long_text(-1)); }),
                    "holds a text of negative length"));
  PickleWriter one;
  one.global("collections", "OrderedDict").raw("]]").text("weight").raw("a");
  one.raw(tensor.bytes()).raw("aa\x85R");
  EXPECT_EQ(names(one.bytes()), std::vector<std::string>{"weight"});
  PickleWriter number;
  number.raw("}").integer(7).raw(tensor.bytes()).raw("s");
  EXPECT_EQ(names(number.bytes()), std::vector<std::string>{"7"});
}

TEST(TorchFile, DictionariesWithADefault) {
  TorchContent content;
  add_tensor(content, "weight", {2}, {1.5F, -2.0F});
  ArchiveMembers members = torch_zip_members(content);
  std::string& pickle = members[0].second;
  const std::string ordered = PickleWriter().ordered_dict().bytes();
  const std::size_t at = pickle.find(ordered);
  ASSERT_NE(at, std::string::npos);
  PickleWriter with_default;
  with_default.global("collections", "defaultdict").global("builtins", "int").raw("\x85R");
  pickle.replace(at, ordered.size(), with_default.bytes());
  const TemporaryFolder folder;
  folder.write("d.pth", zip_of(members));
  EXPECT_EQ(read_tensor_file(folder.in("d.pth")).tensors.at(0).name, "weight");
}

// Dictionaries of other classes (EasyDict, addict, Box) are objects with items, and sometimes with
// a state: the same items again, or what else the object has.
TEST(TorchFile, DictionariesOfOtherClasses) {
  TorchContent content;
  add_tensor(content, "weight", {2}, {1.5F, -2.0F});
  const TemporaryFolder folder;
  const auto names = [&](const std::string& state) {
    ArchiveMembers members = torch_zip_members(content);
    std::string& pickle = members[0].second;
    const std::string ordered = PickleWriter().ordered_dict().bytes();
    pickle.replace(pickle.find(ordered), ordered.size(),
                   PickleWriter().global("easydict", "EasyDict").raw(")\x81").bytes());
    const std::string own =
        PickleWriter().raw("}").text("_metadata").ordered_dict().raw("sb").bytes();
    EXPECT_TRUE(holds(pickle, own));
    pickle.replace(pickle.find(own), own.size(), state);
    folder.write("d.pth", zip_of(members));
    std::vector<std::string> all;
    for (const auto& t : read_tensor_file(folder.in("d.pth")).tensors) {
      all.push_back(t.name);
    }
    return all;
  };
  const std::vector<std::string> own = {"weight"}, both = {"weight", "scale"};
  EXPECT_EQ(names(""), own);
  EXPECT_EQ(names(PickleWriter().raw("}").text("epoch").integer(3).raw("sb").bytes()), own);
  PickleWriter state;
  state.raw("}").text("_parameters").raw("}").text("scale");
  state.global("torch._utils", "_rebuild_tensor_v2").raw("((").text("storage");
  state.global("torch", "FloatStorage").text("0").text("cpu").integer(2).raw("tQ");
  state.integer(0).integers({2}).integers({1}).raw("\x89").ordered_dict().raw("tRssb");
  EXPECT_EQ(names(state.bytes()), both);
  content.wrapper = "state_dict";
  EXPECT_EQ(names(""), std::vector<std::string>{"state_dict/weight"});
}

// What stands in place of a state_dict is named, since its tensors have no names.
TEST(TorchFile, AListInPlaceOfADictionaryIsNamed) {
  TorchContent content;
  add_tensor(content, "weight", {2}, {1.5F, -2.0F});
  const TemporaryFolder folder;
  const std::string path = folder.in("t.pth");
  for (const auto& [end, kind] : {std::pair<const char*, const char*>{"\x85.", "tuple"},
                                  {"N\x86.", "tuple"},
                                  {"0](NNe.", "list"}}) {
    ArchiveMembers members = torch_zip_members(content);
    std::string& pickle = members[0].second;
    ASSERT_EQ(pickle.back(), '.');
    pickle.replace(pickle.size() - 1, 1, end);
    folder.write("t.pth", zip_of(members));
    EXPECT_EQ(message_of<InputError>([&] { read_tensor_file(path); }),
              path + ": holds a " + kind +
                  " where a dictionary of tensors is expected; save the state_dict alone: "
                  "torch.save(model.state_dict(), FILE)");
  }
}

// Devices without storages (XLA, MAIA) save a tensor of the CPU, or, earlier, an array of numpy.
TEST(TorchFile, TensorsOfDevicesWithoutStorages) {
  TorchContent content;
  add_tensor(content, "weight", {2}, {1.5F, -2.0F});
  const TemporaryFolder folder;
  const std::string path = folder.in("t.pth");
  const auto save = [&](const std::string& call, bool parameter) {
    PickleWriter tensor;
    if (parameter) tensor.global("torch._utils", "_rebuild_parameter").raw("(");
    tensor.global("torch._utils", call).raw("(");
    tensor.global("torch._utils", "_rebuild_tensor_v2").raw("((").text("storage");
    tensor.global("torch", "FloatStorage").text("0").text("cpu").integer(2).raw("tQ");
    tensor.integer(1).integers({1}).integers({1}).raw("\x89").ordered_dict().raw("tR");
    tensor.global("torch", "float32").text("xla:0").raw("\x89tR");
    if (parameter) tensor.raw("\x88").ordered_dict().raw("tR");
    content.further = {{"shift", tensor.bytes()}};
    folder.write("t.pth", torch_zip(content));
  };
  for (const bool parameter : {false, true}) {
    save("_rebuild_device_tensor_from_cpu_tensor", parameter);
    const TensorFile file = read_tensor_file(path);
    ASSERT_EQ(file.tensors.size(), 2U);
    EXPECT_EQ(file.tensors[1].name, "shift");
    std::vector<float> space;
    EXPECT_EQ(float_values(file.tensors[1], space)[0], -2.0F);
    EXPECT_TRUE(file.notes.empty());
    for (const char* call : {"_rebuild_device_tensor_from_numpy", "_rebuild_xla_tensor"}) {
      save(call, parameter);
      EXPECT_EQ(message_of<InputError>([&] { read_tensor_file(path); }),
                path +
                    ": tensor 'shift' of another device was saved as an array of numpy; save it "
                    "from the CPU: torch.save({k: v.cpu() for k, v in "
                    "model.state_dict().items()}, FILE)");
    }
  }
}

// torch.save(..., pickle_protocol=4) puts a frame around each pickle.
TEST(TorchFile, StreamsOfLaterProtocols) {
  TorchContent content;
  add_tensor(content, "weight", {2}, {1.5F, -2.0F});
  const std::string stream = torch_stream(content);
  const TemporaryFolder folder;
  for (const char protocol : {'\4', '\5'}) {
    const std::string front = std::string("\x80") + protocol + "\x95";
    folder.write("s.pth", front + std::string("\x0d\0\0\0\0\0\0\0", 8) + stream.substr(2));
    const TensorFile file = read_tensor_file(folder.in("s.pth"));
    EXPECT_EQ(file.format, "PyTorch pickle stream");
    EXPECT_EQ(file.tensors.size(), 1U);
    folder.write("s.pth", front);
    EXPECT_TRUE(holds(message_of<InputError>([&] { read_tensor_file(folder.in("s.pth")); }),
                      "none of torch.save()"));
  }
}

// Tensors of types that no weights have, such as complex numbers, must be left out, not refused,
// but named.
TEST(TorchFile, TensorsOfOtherTypesAreLeft) {
  TorchContent content;
  add_tensor(content, "weight", {1}, {1.5F});
  PickleWriter other;
  other.global("torch._utils", "_rebuild_tensor_v2").raw("((").text("storage");
  other.global("torch", "ComplexDoubleStorage").text("9").text("cpu").integer(2).raw("tQ");
  other.integer(0).integers({2}).integers({1}).raw("\x89").ordered_dict().raw("tR");
  content.further.emplace_back("spectrum", other.bytes());
  PickleWriter sparse;
  sparse.global("torch._utils", "_rebuild_sparse_tensor").raw("(NNtR");
  content.further.emplace_back("sparse", sparse.bytes());
  const TemporaryFolder folder;
  folder.write("t.pth", torch_zip(content));
  const TensorFile file = read_tensor_file(folder.in("t.pth"));
  ASSERT_EQ(file.tensors.size(), 1U);
  EXPECT_EQ(file.notes.at(0),
            "left out: 2 tensors of types that are not read (sparse, quantised, complex and the "
            "like): spectrum, sparse");
  EXPECT_EQ(file.notes.at(1),
            "names a global that is not needed and was not run: "
            "torch._utils._rebuild_sparse_tensor");
}

// In a stream, storages lie one behind the other, so that those that are left out have to be
// measured.
TEST(TorchFile, StoragesOfOtherTypesAreLeftInStreams) {
  struct Replaced {
    ElementType type;
    std::string written, read;
    std::size_t more;  // bytes of the storage that the written type does not have
  };
  const TemporaryFolder folder;
  for (const Replaced& replaced :
       {Replaced{ElementType::kF64, "torch\nDoubleStorage", "torch\nComplexDoubleStorage", 16},
        Replaced{ElementType::kF32, "torch\nFloatStorage", "torch\nComplexHalfStorage", 0},
        Replaced{ElementType::kI32, "torch\nIntStorage", "torch.cuda\nQInt32Storage", 0},
        Replaced{ElementType::kI8, "torch\nCharStorage", "torch\nQInt8Storage", 0},
        Replaced{ElementType::kI8, "torch\nCharStorage", "torch.storage\nUntypedStorage", 0}}) {
    TorchContent content;
    content.storages = {{"1", ElementType::kI64, little(std::int64_t{7})},
                        {"2", replaced.type, std::string(16, '*')}};
    content.tensors = {{"weight", 0, {1}, {1}, 0}, {"other", 1, {2}, {1}, 0}};
    std::string stream = torch_stream(content);
    const std::size_t at = stream.find(replaced.written);
    ASSERT_NE(at, std::string::npos);
    stream.replace(at, replaced.written.size(), replaced.read);
    stream.insert(stream.find(std::string(16, '*')), replaced.more, '*');
    folder.write("s.pth", stream);
    const TensorFile file = read_tensor_file(folder.in("s.pth"));
    ASSERT_EQ(file.tensors.size(), 1U) << replaced.read;
    EXPECT_EQ(integer_values(file.tensors[0]), std::vector<std::int64_t>{7}) << replaced.read;
    EXPECT_EQ(file.notes.at(0),
              "left out: 1 tensor of types that are not read (sparse, quantised, complex and the "
              "like): other");
  }
}

// PyTorch stores a lazily negated view as it lies, with a bit that says so.
TEST(TorchFile, ANegatedViewIsRefused) {
  const TemporaryFolder folder;
  const auto with_bit = [&](const std::string& bit) {
    PickleWriter tensor;
    tensor.global("torch._utils", "_rebuild_tensor_v2").raw("((").text("storage");
    tensor.global("torch", "FloatStorage").text("0").text("cpu").integer(2).raw("tQ");
    tensor.integer(0).integers({2}).integers({1}).raw("\x89").ordered_dict();
    tensor.raw("}").text("neg").raw(bit).raw("stR");
    TorchContent content;
    add_tensor(content, "weight", {2}, {1.5F, -2.0F});
    content.further.emplace_back("view", tensor.bytes());
    folder.write("t.pth", torch_zip(content));
    return folder.in("t.pth");
  };
  EXPECT_EQ(read_tensor_file(with_bit("\x89")).tensors.size(), 2U);
  const std::string negated = with_bit("\x88");
  EXPECT_EQ(message_of<InputError>([&] { read_tensor_file(negated); }),
            negated +
                ": tensor 'view' is a view that negates its values, which are stored without "
                "their sign; save tensor.resolve_neg()");
}

// A zip archive's kind must follow from its entries' names, not from bytes anywhere in it.
TEST(TorchFile, ATextInAnArchiveMakesItNoneOfKeras) {
  TorchContent content;
  add_tensor(content, "weight", {2}, {1.5F, -2.0F});
  PickleWriter from;
  content.further.emplace_back("from", from.text("resnet50.model.weights.h5").bytes());
  const TemporaryFolder folder;
  folder.write("t.pth", torch_zip(content));
  const TensorFile file = read_tensor_file(folder.in("t.pth"));
  EXPECT_EQ(file.format, "PyTorch zip archive");
  EXPECT_EQ(file.tensors.size(), 1U);
}

// Models that were pickled whole, and other objects that training programs save with the weights.
TEST(TorchFile, WholeModelsAndTrainingStates) {
  TorchContent content;
  add_tensor(content, "weight", {2}, {1.5F, -2.0F});
  PickleWriter namespace_of_arguments;
  namespace_of_arguments.global("argparse", "Namespace").raw(")\x81}").text("lr").raw("G");
  namespace_of_arguments.raw(std::string("\x3f\xb9\x99\x99\x99\x99\x99\x9a", 8)).raw("sb");
  content.further.emplace_back("args", namespace_of_arguments.bytes());
  content.wrapper = "state_dict";
  const TemporaryFolder folder;
  folder.write("state.pth", torch_zip(content));
  const TensorFile file = read_tensor_file(folder.in("state.pth"));
  ASSERT_EQ(file.tensors.size(), 1U);
  EXPECT_EQ(file.tensors[0].name, "state_dict/weight");
  ASSERT_EQ(file.notes.size(), 1U);
  EXPECT_TRUE(holds(file.notes[0], "argparse.Namespace"));

  // Old versions of torch.save() store the source of a model's classes beside the model.
  PickleWriter model;
  model.raw("(").text("module").global("net", "Net").text("net.py").text("class Net: pass\n");
  model.raw("tQ)\x81}").text("training").raw("\x88sb");
  content.further = {{"model", model.bytes()}};
  folder.write("old.pth", torch_stream(content));
  const TensorFile old = read_tensor_file(folder.in("old.pth"));
  ASSERT_EQ(old.tensors.size(), 1U);
  EXPECT_EQ(old.tensors[0].name, "state_dict/weight");
}

// Objects beside the weights that Python pickles by opcodes which no tensor needs: the state of
// numpy's PCG64 (two integers of 128 bits, which take 17 bytes if their top bit is set), and in
// protocols 4 and 5 a frozenset and the bytes of an array.
TEST(TorchFile, ObjectsBesideTheWeightsAreRead) {
  const TemporaryFolder folder;
  const std::string number = "\x8a\x11" + std::string(16, '\xff') + std::string(1, '\0');
  const std::string longest = "\x8a\xff" + std::string(255, '\1');
  const std::string set = "(K\1K\2\x91";
  const std::string array = std::string("\x96\3\0\0\0\0\0\0\0", 9) + "abc";
  for (const std::string& opcodes : {number, longest, set, array}) {
    TorchContent content;
    add_tensor(content, "weight", {2}, {1.5F, -2.0F});
    content.further.emplace_back("state", opcodes);
    folder.write("t.pth", torch_zip(content));
    EXPECT_EQ(read_tensor_file(folder.in("t.pth")).tensors.size(), 1U);
  }
}

}  // namespace
}  // namespace rk
