// Files of weights that are damaged, misleading or no weights at all: each must be refused in one
// line, no code in them may ever run, and none may make a program take more memory than max(2 x the
// file's size, 1 GB).
#include "engine/base/error.h"
#include "engine/base/random.h"
#include "engine/base/sanitizers.h"
#include "engine/base/text_of.h"
#include "tests/support/folder_test.h"
#include "tests/support/messages.h"
#include "tests/support/peak_memory.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/weights/raw_hdf5.h"
#include "tests/support/weights/torch_writer.h"
#include "weights/checkpoint.h"
#include "weights/foreign/network_weights.h"
#include "weights/hdf5/file.h"

#include <hdf5.h>

#include <fcntl.h>
#include <sys/file.h>

#include <cstring>
#include <filesystem>

namespace rk {
namespace {

class HostileWeights : public FolderTest<TemporaryFolder> {
 protected:
  std::string path() const { return in("hostile"); }

  // Reads a file as `convert` does, in a child process, and checks the child's peak memory.
  static void expect_little_memory(const std::string& file) {
    if (RK_SANITIZED) return;
    constexpr std::int64_t kFree = 1'000'000'000;
    const auto size = static_cast<std::int64_t>(std::filesystem::file_size(file));
    EXPECT_LE(peak_bytes([&] { findings(network_weights(read_tensor_file(file))); }),
              std::max(2 * size, kFree))
        << size;
  }

  std::string refusal(std::string_view bytes) {
    folder_.write("hostile", bytes);
    expect_little_memory(path());
    const std::string message = message_of<InputError>([&] { read_tensor_file(path()); });
    EXPECT_TRUE(message.starts_with(path())) << message;
    return message.empty() ? "" : message.substr(path().size());
  }
  TensorFile accepted(std::string_view bytes) {
    folder_.write("hostile", bytes);
    expect_little_memory(path());
    return read_tensor_file(path());
  }
  void expect_refused(std::string_view bytes, const std::string& why) {
    const std::string message = refusal(bytes);
    EXPECT_TRUE(holds(message, why));
  }

  static TorchContent content() {
    TorchContent content;
    add_tensor(content, "conv1.weight", {2, 3}, {1, 2, 3, 4, 5, 6});
    add_tensor(content, "fc.bias", {2}, {7, 8});
    return content;
  }
  // Puts the pickle into a zip archive as torch.save() does.
  static std::string around(std::string_view pickle) {
    return zip_of({{"a/data.pkl", std::string(pickle)},
                   {"a/data/0", std::string(24, '\0')},
                   {"a/version", "3"}});
  }
  static PickleWriter rebuilt(std::int64_t offset, const std::vector<std::int64_t>& dims,
                              const std::vector<std::int64_t>& strides, std::int64_t elements = 6) {
    PickleWriter out;
    out.proto().raw("}").text("x").global("torch._utils", "_rebuild_tensor_v2").raw("((");
    out.text("storage").global("torch", "FloatStorage").text("0").text("cpu").integer(elements);
    out.raw("tQ").integer(offset).integers(dims).integers(strides).raw("\x89").ordered_dict();
    out.raw("tRs.");
    return out;
  }
};

TEST_F(HostileWeights, Case1EmptyFile) { expect_refused("", "is empty"); }

TEST_F(HostileWeights, Case2RandomBytes) {
  CounterRandom random(2, 0, 0);
  std::string bytes;
  for (int i = 0; i < 5000; ++i) bytes += static_cast<char>(random.below(256));
  expect_refused(bytes, "is no file of weights that is known");
}

TEST_F(HostileWeights, Case3WebPage) {
  expect_refused("<!DOCTYPE html><html><body>404</body></html>", "is a web page");
  expect_refused("\n  <html lang=en>", "is a web page");
}

TEST_F(HostileWeights, Case4GitLfsPointer) {
  expect_refused("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
                 "git lfs pull");
}

TEST_F(HostileWeights, AnOnnxGraph) {
  // As ours and PyTorch's exporter begin: ir_version, then the producer or the graph.
  for (const char* rest : {"\x12\x07pytorch", "\x3a\x04\x0a\x02xy", "\x42\x04\x0a\x00\x10\x0d"}) {
    expect_refused(std::string("\x08\x08") + rest, "is an ONNX graph");
  }
  expect_refused("\x08\x08 and other bytes", "is no file of weights that is known");
}

TEST_F(HostileWeights, Case5ZipCutOff) {
  const std::string whole = torch_zip(content());
  for (const double share : {0.1, 0.5, 0.9, 0.99}) {
    const auto bytes = static_cast<std::size_t>(static_cast<double>(whole.size()) * share);
    expect_refused(whole.substr(0, bytes), "download it again");
  }
  const std::size_t end = whole.rfind("PK\x05\x06");
  for (const std::size_t bytes : {whole.size() / 2, end, end + 3}) {
    expect_refused(whole.substr(0, bytes),
                   fmt::format(": ends after {} bytes without the directory of a zip archive: it "
                               "was cut off; download it again",
                               bytes));
  }
  EXPECT_EQ(accepted(whole).tensors.size(), 2U);
  std::string commented = whole + std::string(1000, 'c');
  commented.replace(end + 20, 2, "\xe8\x03");  // the comment's length
  EXPECT_EQ(accepted(commented).tensors.size(), 2U);
}

TEST_F(HostileWeights, AnIndexIsNoModel) {
  const std::string index = R"({"metadata": {"total_size": 102}, "weight_map": {"conv1.weight": )"
                            R"("model-00001-of-00002.safetensors"}})";
  for (const std::string& text : {index, "\n " + index}) {
    expect_refused(text,
                   ": is the index of a model in several files; join the tensors that it "
                   "names in one file");
  }
  expect_refused(R"({"weights": {}})", "is no file of weights that is known");
}

TEST_F(HostileWeights, OtherArchivesOfKeras) {
  for (const auto& [entry, kind] : {std::pair<const char*, const char*>{
                                        "model.weights.npz", " with weights as arrays of numpy"},
                                    {"model.weights.json", " with weights in several files"},
                                    {"other", ""}}) {
    expect_refused(zip_of({{"config.json", "{}"}, {"metadata.json", "{}"}, {entry, "x"}}),
                   fmt::format(": is a Keras archive{}, without model.weights.h5; save the weights "
                               "alone: model.save_weights('x.weights.h5')",
                               kind));
  }
  expect_refused(zip_of({{"config.json", "{}"}, {"a/version", "3"}}), "without data.pkl");
}

TEST_F(HostileWeights, Case6NoPickle) {
  expect_refused(zip_of({{"a/version", "3"}}), "without data.pkl");
}

TEST_F(HostileWeights, Case7NoRecord) {
  ArchiveMembers members = torch_zip_members(content());
  std::erase_if(members, [](const auto& member) { return member.first.ends_with("/data/1"); });
  expect_refused(zip_of(members), "storage '1' is missing");
}

TEST_F(HostileWeights, Case8ShortRecord) {
  ArchiveMembers members = torch_zip_members(content());
  for (auto& [name, bytes] : members) {
    if (name.ends_with("/data/0")) bytes.resize(20);
  }
  expect_refused(zip_of(members), "has 20 bytes for 6 elements of 4");
}

TEST_F(HostileWeights, Case9Checksum) {
  std::string bytes = torch_zip(content());
  const std::string values = little(7.0F) + little(8.0F);
  const std::size_t at = bytes.find(values);
  ASSERT_NE(at, std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  expect_refused(bytes, "OUT --no-crc` takes it)");
  folder_.write("hostile", bytes);
  EXPECT_EQ(read_tensor_file(path(), {.check_crc = false}).tensors.size(), 2U);
}

TEST_F(HostileWeights, Case10Twice) {
  ArchiveMembers members = torch_zip_members(content());
  members.push_back(members[1]);
  expect_refused(zip_of(members), "twice");
}

// Python's dictionary would keep the last.
TEST_F(HostileWeights, Case10TwiceInThePickle) {
  TorchContent twice = content();
  add_tensor(twice, "fc.bias", {2}, {9, 9});
  expect_refused(torch_zip(twice), "holds the tensor 'fc.bias' twice");
}

// torch.load() takes the archive's first folder, and refuses what lies beside it.
TEST_F(HostileWeights, Case10TwoNetworks) {
  ArchiveMembers members = torch_zip_members(content(), "good");
  const ArchiveMembers others = torch_zip_members(content(), "another");
  members.insert(members.end(), others.begin(), others.end());
  expect_refused(zip_of(members),
                 "two files of torch.save(), 'another/data.pkl' and 'good/data.pkl'");
}

// Files that inflate to a gigabyte or more of zeros: by one entry that declares 2 GB, and by 120
// entries of 8 MiB, each of them in order.
TEST_F(HostileWeights, Case10Bombs) {
  const std::string zeros(std::size_t{8} << 20, '\0');
  std::string large = zip_of({{"a/data/100", zeros}}, true);
  const std::size_t directory = large.find("PK\x01\x02");
  ASSERT_NE(directory, std::string::npos);
  for (const std::size_t size : {std::size_t{22}, directory + 24}) {
    large.replace(size, 4, little(std::uint32_t{2'000'000'000}));
  }
  expect_refused(large, "with what it unpacks to, more than");

  std::vector<std::string> names;
  for (int i = 0; i < 120; ++i) names.push_back(fmt::format("a/data/{}", 100 + i));
  const std::string many = zip_of_copies(zeros, names);
  EXPECT_LT(many.size(), std::size_t{8} << 20);
  expect_refused(many, "with what it unpacks to, more than");
}

TEST_F(HostileWeights, Case10Encrypted) {
  std::string bytes = torch_zip(content());
  for (const auto& [header, flags] :
       {std::pair<std::string, std::size_t>{"PK\x03\x04", 6}, {"PK\x01\x02", 8}}) {
    for (std::size_t at = bytes.find(header); at != std::string::npos;
         at = bytes.find(header, at + 1)) {
      bytes[at + flags] = static_cast<char>(bytes[at + flags] | 1);
    }
  }
  expect_refused(bytes, "is encrypted");
}

// The first storage's entry reaches over the second one, header and all, with a right checksum.
TEST_F(HostileWeights, Case10OverlappingEntries) {
  std::string bytes = torch_zip(content());
  const auto number = [&](std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof(value));
    return std::size_t{value};
  };
  std::vector<std::size_t> entries;  // of the pickle, both storages and the version
  for (std::size_t at = 0; (at = bytes.find("PK\x01\x02", at)) != std::string::npos; ++at) {
    entries.push_back(at);
  }
  ASSERT_EQ(entries.size(), 4U);
  const std::size_t header = number(entries[1] + 42), end = number(entries[3] + 42);
  const std::size_t begin =
      header + 30 + (number(header + 26) & 0xffff) + (number(header + 26) >> 16);
  const std::string longer = zip_of({{"x", bytes.substr(begin, end - begin)}});
  // Checksum and both sizes.
  const std::string described = longer.substr(longer.find("PK\x01\x02") + 16, 12);
  bytes.replace(header + 14, 12, described);
  bytes.replace(entries[1] + 16, 12, described);
  expect_refused(bytes, "lie over each other");
}

// A directory of 47 MB with a million entries for one file. Read in full, each entry would take
// several hundred bytes.
TEST_F(HostileWeights, Case10ManyEntries) {
  const std::string whole = zip_of({{"a", "x"}});
  const std::size_t directory = whole.find("PK\x01\x02"), end = whole.find("PK\x05\x06");
  ASSERT_NE(end, std::string::npos);
  const std::string entry = whole.substr(directory, end - directory);
  constexpr std::uint32_t kEntries = 200'001;
  std::string bytes = whole.substr(0, directory);
  bytes.reserve(directory + kEntries * entry.size() + 100);
  for (std::uint32_t i = 0; i < kEntries; ++i) bytes += entry;
  std::string last = whole.substr(end);
  last.replace(8, 4, std::string(4, '\xff'));  // entries on this disk and in all: 65535
  last.replace(12, 4, little(static_cast<std::uint32_t>(kEntries * entry.size())));
  expect_refused(bytes + last, "more than 200000 entries");
}

// An entry that inflates to more than its declared size must be refused.
TEST_F(HostileWeights, Case10LongerThanItSays) {
  std::string bytes =
      zip_of({{"a/data.pkl", std::string(std::size_t{8} << 20, 'N')}, {"a/version", "3"}}, true);
  const std::size_t entry = bytes.find("PK\x01\x02");
  for (const std::size_t size : {std::size_t{22}, entry + 24}) {
    bytes.replace(size, 4, little(std::uint32_t{1000}));
  }
  expect_refused(bytes, "is longer than it says");
}

TEST_F(HostileWeights, Case11TorchScript) {
  ArchiveMembers members = torch_zip_members(content());
  members.emplace_back("archive/constants.pkl", "x");
  members.emplace_back("archive/code/__torch__.py", "import os");
  expect_refused(zip_of(members), "TorchScript");
}

TEST_F(HostileWeights, Case12StreamCutOff) {
  const std::string whole = torch_stream(content());
  for (std::size_t bytes = 20; bytes < whole.size(); bytes += 7) {
    SCOPED_TRACE(bytes);
    expect_refused(whole.substr(0, bytes), "download ");
  }
}

TEST_F(HostileWeights, Case13OtherPickles) {
  PickleWriter other;
  expect_refused(other.proto().integer(5).stop().bytes(), "is a pickle, but none of torch.save()");
  std::string stream = torch_stream(content());
  const std::size_t protocol = stream.find("M\xe9\x03");
  ASSERT_NE(protocol, std::string::npos);
  stream[protocol + 1] = '\x01';
  expect_refused(stream, "is of the protocol");
}

// What a model's classes are called as. As a tensor's storage it would escape the comparison of all
// references to a storage, and its tensor could reach beyond the file.
TEST_F(HostileWeights, AClassInPlaceOfAStorage) {
  for (const char* key : {"0", "nowhere"}) {
    PickleWriter tensor;
    tensor.global("torch._utils", "_rebuild_tensor_v2").raw("((").text("module");
    tensor.global("torch", "DoubleStorage").text(key).text("cpu").integer(100).raw("NtQ");
    tensor.integer(0).integers({100}).integers({1}).raw("\x89").ordered_dict().raw("tR");
    TorchContent with = content();
    with.further.emplace_back("beyond", tensor.bytes());
    expect_refused(torch_stream(with), "refers to a storage in an unknown way");
  }
}

TEST_F(HostileWeights, Case14Tar) {
  for (const char* key : {"77", "1000000000000x", "x"}) {
    TorchContent with = content();
    with.further.emplace_back("other", PickleWriter().text(key).raw("Q").bytes());
    expect_refused(torch_tar(with), fmt::format("refers to the tensor '{}', which is not", key));
  }
  TorchContent storage = content();
  storage.further.emplace_back("other", PickleWriter().text("1").raw("Q").bytes());
  EXPECT_EQ(accepted(torch_tar(storage)).tensors.size(), 2U);  // by itself it is no tensor
  const std::string whole = torch_tar(content());
  for (std::size_t bytes = 600; bytes < whole.size() - 1024; bytes += 200) {
    SCOPED_TRACE(bytes);
    expect_refused(whole.substr(0, bytes), "it is damaged or was cut off");
  }
  expect_refused(tar_of({{"pickle", "x"}}), "without 'sys_info'");
  // The view of the second tensor: its key, its storage, its first element, the number of them.
  std::string beyond = whole;
  const std::size_t view = beyond.rfind(little(std::int64_t{500'000'000'001}));
  ASSERT_NE(view, std::string::npos);
  ASSERT_EQ(beyond.substr(view + 10, 4), std::string("K\0K\2", 4));
  beyond[view + 11] = '\1';
  expect_refused(beyond, "holds a view beyond its storage");
}

TEST_F(HostileWeights, Case15NothingIsRun) {
  const std::string planted = in("planted");
  PickleWriter call;
  call.global("os", "system").raw("(").text("touch " + planted).raw("tR");
  TorchContent with = content();
  with.further.emplace_back("__reduce__", call.bytes());
  PickleWriter built;
  built.global("builtins", "exec").raw("(").text("open('" + planted + "', 'w')").raw("t\x81}b");
  with.further.emplace_back("b", built.bytes());
  for (const std::string& bytes : {torch_zip(with), torch_stream(with), torch_tar(with)}) {
    const TensorFile file = accepted(bytes);
    EXPECT_EQ(file.tensors.size(), 2U);
    ASSERT_EQ(file.notes.size(), 1U);
    EXPECT_TRUE(holds(file.notes[0], "os.system"));
    EXPECT_TRUE(holds(file.notes[0], "builtins.exec"));
  }
  // In a tensor's place such a call must be refused, and not run either.
  PickleWriter tensor;
  tensor.proto().raw("}").text("x").global("torch._utils", "_rebuild_tensor_v2").raw("(");
  tensor.raw(call.bytes()).integer(0).integers({1}).integers({1}).raw("tRs.");
  expect_refused(around(tensor.bytes()), "is made of no storage");
  EXPECT_FALSE(std::filesystem::exists(planted));
}

TEST_F(HostileWeights, Case16Opcodes) {
  expect_refused(around("\x80\x02i__main__\nX\n."), "opcode 0x69");
  expect_refused(around("\x80\x09N."), "protocol 9");
  expect_refused(around(std::string("\x80\x05\x97\x01\0\0\0\0\0\0\0x.", 13)), "opcode 0x97");
}

TEST_F(HostileWeights, Case17Stack) {
  expect_refused(around("\x80\x02."), "empty stack");
  expect_refused(around("\x80\x02h\x05."), "recalls place 5");
  expect_refused(around("\x80\x02Nt."), "misses a mark");
  expect_refused(around("\x80\x02(R."), "empty stack");
  expect_refused(around("\x80\x02}(Nu."), "key without a value");
}

TEST_F(HostileWeights, Case18Lengths) {
  expect_refused(around("\x80\x02\x8a\xff" + std::string(254, '\1')), "ends in the middle");
  expect_refused(around("\x80\x02X\xff\xff\xff\xff."), "ends in the middle");
  expect_refused(around("\x80\x02X\x10\0\0."), "ends in the middle");
  // Two memoised texts of 64 KiB, and then a global made of both for every five bytes.
  const auto names = [](std::size_t length, int globals) {
    PickleWriter out;
    out.proto().text(std::string(length, 'm')).raw({"q\0", 2}).text(std::string(length, 'n'));
    out.raw({"q\1", 2});
    for (int i = 0; i < globals; ++i) out.raw({"h\0h\1\x93", 5});
    return around(out.stop().bytes());
  };
  expect_refused(names(65'000, 20'000), "names a global by a text of 65000 bytes");
  expect_refused(names(1000, 40'000), "names globals of more than 64 MiB in all");
  // Long texts are ignored as values, but refused as names.
  const std::string log(70'000, 'x');
  const auto tensor_beside = [&](bool as_name) {
    PickleWriter out;
    out.proto().raw("}(").text("log").text(log).text(as_name ? log : "x");
    const std::string tensor = rebuilt(0, {2}, {1}).bytes();
    return around(out.raw(tensor.substr(2, tensor.size() - 3)).raw("u.").bytes());
  };
  EXPECT_EQ(accepted(tensor_beside(false)).tensors.size(), 1U);
  expect_refused(tensor_beside(true), "a name in it has more than 64 KiB");
  PickleWriter global;
  global.proto().text(log).text("n").raw("\x93.");
  expect_refused(around(global.bytes()), "by something that is no text");
  PickleWriter named;
  named.proto().global(std::string(1025, 'm'), "n").stop();
  expect_refused(around(named.bytes()), "names a global by a text of 1025 bytes");
  std::string many = "\x80\x02";
  for (int i = 0; i < 1'000'100; ++i) many += 'N';
  expect_refused(around(many + "."),
                 "more than 1000000 opcodes (byte 1000000); save the weights alone");
}

TEST_F(HostileWeights, Case19Sizes) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const PickleWriter& pickle :
       {rebuilt(-1, {2}, {1}), rebuilt(0, {-2}, {1}), rebuilt(0, {2}, {-1}),
        rebuilt(0, {kMost, kMost}, {1, 1}), rebuilt(0, {2, 2}, {kMost, kMost}),
        rebuilt(kMost, {2}, {1}), rebuilt(0, {2}, {1, 1})}) {
    expect_refused(around(pickle.bytes()), "does not lie in its storage");
  }
  expect_refused(around(rebuilt(0, {2}, {1}, -6).bytes()), "storage '0'");
  EXPECT_EQ(accepted(around(rebuilt(0, {2, 3}, {3, 1}).bytes())).tensors.size(), 1U);
}

TEST_F(HostileWeights, Case20BeyondTheStorage) {
  expect_refused(around(rebuilt(0, {2, 3}, {4, 1}).bytes()), "does not lie in its storage");
  expect_refused(around(rebuilt(1, {6}, {1}).bytes()), "does not lie in its storage");
  // A view that repeats one element (strides 0) would take memory out of proportion to the file.
  expect_refused(around(rebuilt(0, {1 << 20, 1 << 10}, {0, 0}).bytes()), "does not lie");
}

TEST_F(HostileWeights, Case21BigEndian) {
  TorchContent big = content();
  big.big_endian = true;
  for (TorchContent::Storage& storage : big.storages) {
    for (std::size_t i = 0; i < storage.bytes.size(); i += 4) {
      std::reverse(storage.bytes.begin() + static_cast<std::ptrdiff_t>(i),
                   storage.bytes.begin() + static_cast<std::ptrdiff_t>(i + 4));
    }
  }
  for (const std::string& bytes : {torch_zip(big), torch_stream(big), torch_tar(big)}) {
    const TensorFile file = accepted(bytes);
    ASSERT_EQ(file.tensors.size(), 2U);
    std::vector<float> space;
    const auto values = float_values(file.tensors[0], space);
    EXPECT_EQ((std::vector<float>{values.begin(), values.end()}),
              (std::vector<float>{1, 2, 3, 4, 5, 6}));
  }
}

TEST_F(HostileWeights, Case22SharedAndTransposed) {
  TorchContent shared = content();
  shared.tensors.push_back({"transposed", 0, {3, 2}, {1, 3}, 0});
  shared.tensors.push_back({"column", 0, {2}, {3}, 2});
  shared.tensors.push_back({"channels_last", 0, {1, 3, 1, 2}, {6, 1, 6, 3}, 0});
  for (const std::string& bytes : {torch_zip(shared), torch_stream(shared), torch_tar(shared)}) {
    const TensorFile file = accepted(bytes);
    ASSERT_EQ(file.tensors.size(), 5U);
    std::vector<std::vector<float>> read;
    for (std::size_t i = 2; i < 5; ++i) {
      std::vector<float> space;
      const auto values = float_values(file.tensors[i], space);
      read.emplace_back(values.begin(), values.end());
    }
    EXPECT_EQ(read[0], (std::vector<float>{1, 4, 2, 5, 3, 6}));
    EXPECT_EQ(read[1], (std::vector<float>{3, 6}));
    EXPECT_EQ(read[2], (std::vector<float>{1, 4, 2, 5, 3, 6}));
  }
}

// -1.5 in each type, as IEEE 754 and bfloat16 encode it.
TEST_F(HostileWeights, Case23Types) {
  TorchContent typed;
  for (const auto& [type, bytes] :
       {std::pair<ElementType, std::string>{ElementType::kF16, little(std::uint16_t{0xBE00})},
        {ElementType::kBf16, little(std::uint16_t{0xBFC0})},
        {ElementType::kF64, little(-1.5)},
        {ElementType::kF32, little(-1.5F)}}) {
    typed.tensors.push_back({std::string(name_of(type)), typed.storages.size(), {1}, {1}, 0});
    typed.storages.push_back({std::to_string(typed.storages.size()), type, bytes});
  }
  for (const std::string& bytes : {torch_zip(typed), torch_stream(typed), torch_tar(typed)}) {
    for (const StoredTensor& tensor : accepted(bytes).tensors) {
      std::vector<float> space;
      EXPECT_EQ(float_values(tensor, space)[0], -1.5F) << tensor.name;
    }
  }
}

TEST_F(HostileWeights, Circles) {
  // A dictionary that holds itself, and one that holds the next twice, thirty times over.
  expect_refused(around(std::string("\x80\x02}q\0X\x01\0\0\0xh\0s.", 15)), "refer to each other");
  PickleWriter doubled;
  doubled.proto();
  for (char i = 0; i < 31; ++i) {
    doubled.raw("}q").raw({&i, 1});
    const char last = static_cast<char>(i - 1);
    for (const char* key : {"a", "b"}) {
      if (i > 0) doubled.text(key).raw("h").raw({&last, 1}).raw("s");
    }
  }
  expect_refused(around(doubled.stop().bytes()), "refer to each other");
}

// Entries without names also cost time: 50,000 pairs of None, held forty times, as a dictionary and
// as the state of a module.
TEST_F(HostileWeights, PairsWithoutNames) {
  for (const bool module : {false, true}) {
    PickleWriter pickle;
    pickle.proto().raw("}(").raw(std::string(100'000, 'N')).raw("u").raw({"q\0", 2}).raw("0");
    if (module) pickle.global("m", "Module").raw(")\x81").raw({"h\0", 2}).raw("b");
    if (module) pickle.raw({"q\0", 2}).raw("0");
    pickle.raw("}");
    for (int i = 0; i < 40; ++i) pickle.text(std::to_string(i)).raw({"h\0", 2}).raw("s");
    expect_refused(around(pickle.stop().bytes()), "refer to each other");
  }
}

class HostileSafetensors : public HostileWeights {
 protected:
  static std::string file(std::string_view header, std::size_t data) {
    return little(static_cast<std::uint64_t>(header.size())).append(header) +
           std::string(data, '\0');
  }
  static std::string one(const std::string& dtype, const std::string& shape,
                         const std::string& offsets) {
    return R"({"x":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
           offsets + "}}";
  }
};

TEST_F(HostileSafetensors, Case31Header) {
  std::string long_header = little(std::uint64_t{100'000'001}) + "{";
  long_header.resize(200, ' ');
  expect_refused(long_header, "header of 100000001");
  expect_refused(little(std::uint64_t{1000}) + "{}", "it was cut off");
  // With a header of length 0 the file is not even recognised.
  expect_refused(little(std::uint64_t{0}) + std::string(8, '\0'), "no file of weights");
  EXPECT_TRUE(accepted(file("{}  ", 0)).tensors.empty());
  EXPECT_TRUE(accepted(file(" \n{}\t", 0)).tensors.empty());
}

TEST_F(HostileSafetensors, Case32Json) {
  expect_refused(file("{\"\xff\xfe\":1}", 0), "no valid JSON");
  expect_refused(file("{\"x\":", 0), "no valid JSON");
  expect_refused(file(one("F32", "[1]", "[0,4]") + "x", 4), "no valid JSON");
  std::string deep = "{\"x\":";
  for (int i = 0; i < 1'000'000; ++i) deep += '[';
  expect_refused(file(deep, 0), "an array where none belongs");
  deep = "{\"x\":";
  for (int i = 0; i < 1'000'000; ++i) deep += "{\"x\":";
  expect_refused(file(deep, 0), "unknown field");
  const std::string twice = one("F32", "[1]", "[0,4]");
  expect_refused(file(twice.substr(0, twice.size() - 1) + "," + twice.substr(1), 4), "twice");
  for (const auto& [offsets, why] : {std::pair{"[0.0,4]", "a number that is not whole"},
                                     {"[0,4e0]", "a number that is not whole"},
                                     {"[-0,4]", "a negative number"},
                                     {"[0,-4]", "a negative number"},
                                     {"[0]", "data_offsets that are not two numbers"},
                                     {"[0,2,4]", "data_offsets that are not two numbers"},
                                     {"[[0],4]", "an array within an array"},
                                     {"[\"0\",4]", "text where none belongs"},
                                     {"[null,4]", "a null"},
                                     {"[true,4]", "a boolean"}}) {
    SCOPED_TRACE(offsets);
    expect_refused(file(one("F32", "[1]", offsets), 4), why);
  }
  expect_refused(file(R"({"x":{"dtype":"F32","shape":[1]}})", 4), "without dtype, shape or");
  expect_refused(file(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"y":1}})", 4),
                 "unknown field 'y'");
  expect_refused(file("[1]", 0), "no file of weights");
}

TEST_F(HostileSafetensors, Case33Layout) {
  const auto two = [](const char* first, const char* second) {
    return fmt::format(R"({{"a":{{"dtype":"F32","shape":[1],"data_offsets":{}}},)"
                       R"("b":{{"dtype":"F32","shape":[1],"data_offsets":{}}}}})",
                       first, second);
  };
  EXPECT_EQ(accepted(file(two("[4,8]", "[0,4]"), 8)).tensors[0].name, "b");
  expect_refused(file(two("[0,4]", "[2,6]"), 8), "begins at byte 2");
  expect_refused(file(two("[0,4]", "[6,10]"), 10), "begins at byte 6");
  expect_refused(file(two("[0,4]", "[4,8]"), 9), "end at byte 8");
  expect_refused(file(two("[0,4]", "[4,8]"), 6), "claims bytes 4 to 8 of 6");
  expect_refused(file(two("[0,4]", "[4,2]"), 8), "claims bytes 4 to 2");
}

TEST_F(HostileSafetensors, Case34Overflow) {
  expect_refused(file(one("F32", "[4294967296,4294967296,16]", "[0,0]"), 0), "can be counted");
  expect_refused(file(one("F32", "[18446744073709551615]", "[0,0]"), 0), "can be counted");
  expect_refused(file(one("F32", "[99999999999999999999999]", "[0,0]"), 0), "not whole");
  for (const char* empty : {"[0,7]", "[1152921504606846976,0]", "[4294967296,4294967296,0]"}) {
    EXPECT_EQ(accepted(file(one("F32", empty, "[0,0]"), 0)).tensors[0].elements(), 0) << empty;
  }
}

TEST_F(HostileSafetensors, Case35Types) {
  expect_refused(file(one("F31", "[1]", "[0,4]"), 4), "unknown dtype 'F31'");
  expect_refused(file(one("F4", "[3]", "[0,1]"), 1), "whole byte");
  EXPECT_EQ(accepted(file(one("F4", "[4]", "[0,2]"), 2)).tensors[0].type, ElementType::kF4);
}

TEST_F(HostileSafetensors, Case36Metadata) {
  expect_refused(file(R"({"__metadata__":{"a":1}})", 0), "a number where none belongs");
  expect_refused(file(R"({"__metadata__":[]})", 0), "an array where none belongs");
  EXPECT_TRUE(accepted(file(R"({"__metadata__":{}})", 0)).metadata.empty());
  EXPECT_EQ(accepted(file(R"({"__metadata__":{"format":"pt"}})", 0)).metadata.at("format"), "pt");
}

// Headers that would take many times their size in memory: too many tensors, axes or names.
TEST_F(HostileSafetensors, Case36LongHeaders) {
  std::string many = "{";
  for (int i = 0; i < 100'001; ++i) {
    many += fmt::format(R"({}"{}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})",
                        i > 0 ? "," : "", i);
  }
  expect_refused(file(many + "}", 0), "more than 100000 tensors");
  std::string axes = "[0";
  for (int i = 0; i < 100'000; ++i) axes += ",0";
  expect_refused(file(one("F32", axes + "]", "[0,0]"), 0), "more than 64 numbers");
  expect_refused(file(one("F32", "[0]", axes + "]"), 0), "more than 64 numbers");
  expect_refused(file("{\"" + std::string(std::size_t{8} << 20, 'x') + "\":{}}", 0),
                 "a name of more than 64 KiB");
  std::string texts = R"({"__metadata__":{)";
  for (int i = 0; i < 100'001; ++i) texts += fmt::format(R"({}"{}":"")", i > 0 ? "," : "", i);
  expect_refused(file(texts + "}}", 0), "more than 100000 metadata");
}

TEST_F(HostileSafetensors, Case37Names) {
  const std::string name = "../\\u0000\\n/etc/passwd";
  const TensorFile read =
      accepted(file(R"({")" + name + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4));
  EXPECT_EQ(read.tensors[0].name, std::string("../\0\n/etc/passwd", 16));
  const std::string message = message_of<InputError>([&] { network_weights(read); });
  EXPECT_TRUE(holds(message, "../\\x00\\n/etc/passwd"));
}

// weights/hdf5/file.h guards against hostile HDF5 files. These tests check that Keras's files,
// alone and in archives, are read through it.
class HostileKeras : public HostileWeights {
 protected:
  static std::string fixture(const std::string& name) {
    return file_text(RK_TEST_GOLDEN "/fixtures/" + name);
  }
  static std::string archive(const std::string& weights, bool deflate = false) {
    return zip_of({{"config.json", "{}"}, {"model.weights.h5", weights}}, deflate);
  }
  void expect_both_refused(const std::string& bytes, const std::string& why) {
    expect_refused(bytes, why);
    expect_refused(archive(bytes), why);
    expect_refused(archive(bytes, true), why);
  }
  // Returns a file that `make` fills through the HDF5 library itself.
  template <class F> std::string made(F&& make) {
    return file_text(made_hdf5(in("made.h5"), make));
  }
};

TEST_F(HostileKeras, Case38NoHdf5) {
  expect_both_refused("\x89HDF\r\n\x1a\n" + std::string(100, '\0'), "cannot be opened as HDF5");
  const std::string whole = fixture("k.h5");
  ASSERT_GT(whole.size(), 10'000U);
  for (const double share : {0.1, 0.5, 0.9, 0.99}) {
    const auto bytes = static_cast<std::size_t>(static_cast<double>(whole.size()) * share);
    expect_both_refused(whole.substr(0, bytes), "");
  }
  std::string newer = whole;
  newer[8] = '\x09';
  expect_both_refused(newer, "cannot be opened as HDF5");
}

TEST_F(HostileKeras, Case39Elsewhere) {
  expect_both_refused(fixture("hx_external.h5"), "is a link to elsewhere");
  expect_both_refused(fixture("hx_extstorage.h5"), "external storage");
  expect_both_refused(fixture("hx_vds.h5"), "virtual data set");
  expect_both_refused(made([](hid_t file) {
                        H5Lcreate_soft("/elsewhere", file, "soft", H5P_DEFAULT, H5P_DEFAULT);
                      }),
                      "is a link to elsewhere");
}

TEST_F(HostileKeras, Case40Bombs) {
  expect_both_refused(fixture("hx_bomb.h5"), "claims");
  expect_both_refused(fixture("hdf5/memory.h5"), "inflates beyond its size");
}

// The size of a text on the heap is damaged as in the fixtures crash.h5 and hang.h5, which make the
// library crash or loop for ever.
TEST_F(HostileKeras, Case41CrashAndHang) {
  Hdf5Writer writer;
  writer.set_attribute("/", "backend", "tensorflow");
  writer.write("/conv1_conv/conv1_conv/kernel:0", {1}, std::vector<float>{1}.data());
  const std::string whole(text_of(writer.finish()));
  const std::size_t heap = whole.find("GCOL");
  ASSERT_NE(heap, std::string::npos);
  constexpr std::size_t kSize = 24;  // offset of the first text's size in the heap
  const auto with_size = [&](std::uint64_t size) {
    std::string broken = whole;
    broken.replace(heap + kSize, sizeof(size), little(size));
    return broken;
  };
  const std::string crash = with_size(std::uint64_t{1} << 24);
  // HDF5 1.14 finds the damage itself. Before, it reads on behind the file's memory, and crashes
  // unless tests before this one have left enough memory there: then it does not find the tensor. A
  // crash's words depend on how it ends: under a sanitizer it exits.
  for (const std::string& bytes : {crash, archive(crash)}) {
    const std::string message = refusal(bytes);
    EXPECT_TRUE(message.find("cannot be read") != std::string::npos ||
                (!H5_VERSION_GE(1, 14, 0) && holds(message, "s the HDF5 library")))
        << message;
  }
  // The library may take two seconds, so this is read once, and its memory is not measured.
  folder_.write("hostile", with_size(~std::uint64_t{15}));
  EXPECT_TRUE(holds(message_of<InputError>([&] { read_tensor_file(path()); }),
                    "keeps the HDF5 library busy"));
}

// Reading must need no lock: another process may hold the file's, or its file system may have none.
TEST_F(HostileKeras, Case42Locked) {
  const std::string whole = fixture("k.h5");
  folder_.write("locked.h5", whole);
  const std::string ours = in("ours.h5");
  CheckpointWriter writer(ModelDescription{});
  folder_.write("ours.h5", writer.finish());
  for (const std::string& file : {in("locked.h5"), ours}) {
    const int descriptor = ::open(file.c_str(), O_RDWR);
    ASSERT_EQ(::flock(descriptor, LOCK_EX), 0);
    if (file == ours) {
      EXPECT_EQ(Checkpoint(file).model().arch, "resnet50");
    } else {
      EXPECT_FALSE(read_tensor_file(file).tensors.empty());
    }
    ::close(descriptor);
  }
}

TEST_F(HostileKeras, Case43Filter) {
  constexpr H5Z_filter_t kBlosc = 32001;
  expect_both_refused(made([&](hid_t file) {
                        const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
                        const hsize_t side = 8;
                        H5Pset_chunk(creation, 1, &side);
                        H5Pset_filter(creation, kBlosc, H5Z_FLAG_OPTIONAL, 0, nullptr);
                        const std::array<float, 8> values{};
                        write_set(file, "packed", H5T_IEEE_F32LE, {side}, values.data(), creation);
                        H5Pclose(creation);
                      }),
                      "is packed with filter 32001");
}

// Names and shapes that are nearly Keras's.
TEST_F(HostileKeras, Case44Mapping) {
  const auto refusal_of = [&](const std::string& name, const std::vector<std::int64_t>& dims) {
    Hdf5Writer writer;
    std::int64_t count = 1;
    for (const std::int64_t d : dims) count *= d;
    writer.write(name, dims, std::vector<float>(static_cast<std::size_t>(count), 1.0F).data());
    const TensorFile file = accepted(text_of(writer.finish()));
    return message_of<InputError>([&] { network_weights(file); });
  };
  for (const char* name :
       {"/conv1_conv/conv1_conv/kernel:0", "/layers/conv2d/vars/0",
        "/layers/conv2d_99999999999/vars/0", "/layers/conv2d_52/vars/9",
        "/conv2_block99999999999999_1_conv/kernel:0", "/vars/0", "/layers/vars/0",
        "/res9z_branch2a/res9z_branch2a_W:0", "/conv1/conv1_W:0"}) {
    for (const std::vector<std::int64_t>& dims :
         {std::vector<std::int64_t>{}, {7, 7, 3, 64}, {64, 0, 7, 7}}) {
      const std::string message = refusal_of(name, dims);
      EXPECT_TRUE(message.find("is not the whole of Keras's ResNet-50: ") != std::string::npos ||
                  holds(message, "holds no layer of Keras's ResNet-50, "))
          << name;
    }
  }
}

// Code planted wherever a file has room for it must never be run.
TEST_F(HostileKeras, Case15NothingIsRunInAnyContainer) {
  const std::string planted = in("planted");
  const std::string program = "__import__('os').system('touch " + planted + "')";
  Hdf5Writer writer;
  writer.write("/conv1_conv/conv1_conv/kernel:0", {1}, std::vector<float>{1}.data());
  const std::string config =
      R"({"class_name":"Lambda","config":{"function":["4wEAAAA=",null,null]},"code":")" + program +
      "\"}";
  writer.set_attribute("/", "model_config", config);
  writer.set_attribute("/", "backend", program);
  const std::string keras(text_of(writer.finish()));
  const std::string header = R"({"__metadata__":{"format":"pt","rankine":")" + program +
                             R"("},"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  for (const std::string& bytes :
       {keras,
        zip_of({{"config.json", config}, {"metadata.json", program}, {"model.weights.h5", keras}}),
        little(static_cast<std::uint64_t>(header.size())) + header + std::string(4, '\0')}) {
    EXPECT_EQ(accepted(bytes).tensors.size(), 1U);
    const TensorFile file = accepted(bytes);
    EXPECT_FALSE(message_of<InputError>([&] { network_weights(file); }).empty());
  }
  EXPECT_FALSE(std::filesystem::exists(planted));
}

}  // namespace
}  // namespace rk
