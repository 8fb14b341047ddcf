// The format of safetensors, as its official reader and writer take it.
#include "weights/tensor_files/safetensors.h"

#include "engine/base/error.h"
#include "engine/base/text_of.h"
#include "tests/support/messages.h"
#include "weights/tensor_files/tensor_file.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rk {
namespace {

// Files that the official reader takes: with null for metadata, and with a name that puts a tar
// archive's mark in the place where that has it.
TEST(Safetensors, AreNotTakenForOtherFiles) {
  const auto read = [](const std::string& front, const std::string& name,
                       const std::string& behind = "") {
    std::string header = "{" + front + "\"" + name +
                         R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})" + behind;
    std::string file(8, '\0');
    const std::uint64_t length = header.size();
    std::memcpy(file.data(), &length, 8);
    file += header + std::string(4, '\0');
    const auto bytes = bytes_of(file);
    return read_tensors({bytes.begin(), bytes.end()}, "w.safetensors");
  };
  EXPECT_EQ(read(R"("__metadata__":null,)", "weight").tensors.at(0).name, "weight");
  EXPECT_TRUE(holds(message_of<InputError>([&] { read(R"("other":null,)", "weight"); }), "a null"));
  EXPECT_EQ(read("", "weight", "  ").tensors.size(), 1U);
  for (const std::string_view hidden : {std::string_view("\0", 1), std::string_view("\0{}", 3)}) {
    EXPECT_TRUE(holds(message_of<InputError>([&] { read("", "weight", std::string(hidden)); }),
                      "no valid JSON"));
  }
  const std::string marked = std::string(257 - 8 - 2, 'x') + "ustar";
  EXPECT_EQ(read("", marked).tensors.at(0).name, marked);
}

// The bytes that the official writer makes of these tensors, derived from the format's rules.
TEST(Safetensors, AsTheOfficialWriterWritesIt) {
  const std::vector<float> weight = {1, 2};
  const std::int64_t count = 5;
  const std::vector<std::byte> bytes =
      write_safetensors({{"b", ElementType::kF32, {2}, std::as_bytes(std::span(weight))},
                         {"n", ElementType::kI64, {}, std::as_bytes(std::span(&count, 1))},
                         {"a", ElementType::kF32, {1, 2}, std::as_bytes(std::span(weight))}},
                        {{"format", "pt"}});
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"n":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
      R"("a":{"dtype":"F32","shape":[1,2],"data_offsets":[8,16]},)"
      R"("b":{"dtype":"F32","shape":[2],"data_offsets":[16,24]}})";
  const std::string_view text = text_of(bytes);
  const std::size_t padded = (header.size() + 7) / 8 * 8;
  EXPECT_EQ(text.substr(8, header.size()), header);
  EXPECT_EQ(text.substr(8 + header.size(), padded - header.size()),
            std::string(padded - header.size(), ' '));
  EXPECT_EQ(bytes.size(), 8 + padded + 24);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  EXPECT_EQ(length, padded);
}

}  // namespace
}  // namespace rk
