// Files of weights that are damaged, made to mislead, or none: one line each, and nothing of them
// is ever run.
#include "weights/foreign/resnet_weights.h"

#include "tests/data/temporary_folder.h"
#include "tests/support/torch_writer.h"

#include <cstring>

namespace rk {
namespace {

template <class T> std::string little(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

class HostileWeights : public testing::Test {
 protected:
  std::string path() const { return (folder_.path() / "hostile").string(); }

  std::string refusal(std::string_view bytes) {
    folder_.write("hostile", bytes);
    const std::string message = message_of<InputError>([&] { read_tensor_file(path()); });
    EXPECT_TRUE(message.starts_with(path())) << message;
    return message.empty() ? "" : message.substr(path().size());
  }
  TensorFile accepted(std::string_view bytes) {
    folder_.write("hostile", bytes);
    return read_tensor_file(path());
  }
  void expect_refused(std::string_view bytes, std::string_view why) {
    const std::string message = refusal(bytes);
    EXPECT_NE(message.find(why), std::string::npos) << message;
  }

  static TorchContent content() {
    TorchContent content;
    add_tensor(content, "conv1.weight", {2, 3}, {1, 2, 3, 4, 5, 6});
    add_tensor(content, "fc.bias", {2}, {7, 8});
    return content;
  }
  // A zip archive around this pickle.
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

  TemporaryFolder folder_;
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

TEST_F(HostileWeights, Case5ZipCutOff) {
  const std::string whole = torch_zip(content());
  for (const double share : {0.1, 0.5, 0.9, 0.99}) {
    const auto bytes = static_cast<std::size_t>(static_cast<double>(whole.size()) * share);
    expect_refused(whole.substr(0, bytes), "download it again");
  }
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
  expect_refused(bytes, "--no-crc");
  folder_.write("hostile", bytes);
  EXPECT_EQ(read_tensor_file(path(), {.check_crc = false}).tensors.size(), 2U);
}

TEST_F(HostileWeights, Case10TwiceAndBomb) {
  ArchiveMembers members = torch_zip_members(content());
  members.push_back(members[1]);
  expect_refused(zip_of(members), "twice");
  // More than 1 GiB of zeros in a few MiB.
  const std::string bomb =
      zip_of({{"a/data.pkl", "x"}, {"a/data/0", std::string(std::size_t{1100} << 20, '\0')}}, true);
  EXPECT_LT(bomb.size(), std::size_t{16} << 20);
  expect_refused(bomb, "unpacks to more than");
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
    EXPECT_FALSE(refusal(whole.substr(0, bytes)).empty()) << bytes;
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

TEST_F(HostileWeights, Case14Tar) {
  const std::string whole = torch_tar(content());
  for (std::size_t bytes = 600; bytes < whole.size() - 1024; bytes += 200) {
    EXPECT_FALSE(refusal(whole.substr(0, bytes)).empty()) << bytes;
  }
  expect_refused(tar_of({{"pickle", "x"}}), "without 'sys_info'");
}

TEST_F(HostileWeights, Case15NothingIsRun) {
  const std::string planted = (folder_.path() / "planted").string();
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
    EXPECT_NE(file.notes[0].find("os.system"), std::string::npos) << file.notes[0];
    EXPECT_NE(file.notes[0].find("builtins.exec"), std::string::npos);
  }
  // In a tensor's place it is refused, and not run either.
  PickleWriter tensor;
  tensor.proto().raw("}").text("x").global("torch._utils", "_rebuild_tensor_v2").raw("(");
  tensor.raw(call.bytes()).integer(0).integers({1}).integers({1}).raw("tRs.");
  expect_refused(around(tensor.bytes()), "is made of no storage");
  EXPECT_FALSE(std::filesystem::exists(planted));
}

TEST_F(HostileWeights, Case16Opcodes) {
  expect_refused(around("\x80\x02i__main__\nX\n."), "opcode 0x69");
  expect_refused(around("\x80\x09N."), "protocol 9");
  expect_refused(around(std::string("\x80\x05\x96\x01\0\0\0\0\0\0\0x.", 13)), "opcode 0x96");
}

TEST_F(HostileWeights, Case17Stack) {
  expect_refused(around("\x80\x02."), "empty stack");
  expect_refused(around("\x80\x02h\x05."), "recalls place 5");
  expect_refused(around("\x80\x02Nt."), "misses a mark");
  expect_refused(around("\x80\x02(R."), "empty stack");
  expect_refused(around("\x80\x02}(Nu."), "key without a value");
}

TEST_F(HostileWeights, Case18Lengths) {
  expect_refused(around("\x80\x02\x8a\xff" + std::string(255, '\1') + "."), "integer of 255 bytes");
  expect_refused(around("\x80\x02X\xff\xff\xff\xff."), "text of 4294967295 bytes");
  expect_refused(around("\x80\x02X\x10\0\0."), "ends in the middle");
  std::string many = "\x80\x02";
  for (int i = 0; i < 1'000'100; ++i) many += 'N';
  expect_refused(around(many + "."), "more than 1000000 opcodes");
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
  // A view of one element as many cost memory that no file has.
  expect_refused(around(rebuilt(0, {1 << 20, 1 << 10}, {0, 0}).bytes()), "does not lie");
}

TEST_F(HostileWeights, Circles) {
  // A dictionary that holds itself, and one that holds the next twice, thirty times over.
  expect_refused(around(std::string("\x80\x02}q\0X\x01\0\0\0xh\0s.", 16)), "refer to each other");
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
  // Without a header it is not even recognised.
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
  for (const char* offsets : {"[0.0,4]", "[0,4e0]", "[-0,4]", "[0,-4]", "[0]", "[0,2,4]", "[[0],4]",
                              "[\"0\",4]", "[null,4]", "[true,4]"}) {
    EXPECT_FALSE(refusal(file(one("F32", "[1]", offsets), 4)).empty()) << offsets;
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
  EXPECT_EQ(accepted(file(one("F32", "[0,7]", "[0,0]"), 0)).tensors[0].elements(), 0);
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

TEST_F(HostileSafetensors, Case37Names) {
  const std::string name = "../\\u0000\\n/etc/passwd";
  const TensorFile read =
      accepted(file(R"({")" + name + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4));
  EXPECT_EQ(read.tensors[0].name, std::string("../\0\n/etc/passwd", 16));
  const std::string message = message_of<InputError>([&] { resnet_weights(read); });
  EXPECT_NE(message.find("../\\x00\\x0a/etc/passwd"), std::string::npos) << message;
}

// What an HDF5 file can do is the business of weights/hdf5_file.h; here is that it goes through it.
TEST_F(HostileWeights, Case38And39And40Hdf5) {
  expect_refused("\x89HDF\r\n\x1a\n" + std::string(100, '\0'), "cannot be opened as HDF5");
  for (const char* name : {"hx_bomb.h5", "hx_external.h5", "hx_extstorage.h5", "hx_vds.h5"}) {
    const std::string fixture = std::string(RK_TEST_GOLDEN "/fixtures/") + name;
    EXPECT_FALSE(message_of<InputError>([&] { read_tensor_file(fixture); }).empty()) << name;
  }
}

}  // namespace
}  // namespace rk
