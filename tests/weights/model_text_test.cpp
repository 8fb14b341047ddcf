// What a file of weights says about the network and its images.
#include "weights/foreign/model_text.h"

#include "engine/base/error.h"
#include "tests/support/messages.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace rk {
namespace {

// Other programs resize without antialiasing unless told otherwise, so the text must say it. Older
// files, which do not, are read in the same way.
TEST(ModelText, SaysThatImagesAreResizedWithAntialiasing) {
  const ModelDescription model;
  EXPECT_TRUE(holds(model_text(model), R"("interpolation":"bilinear with antialiasing")"));
  EXPECT_TRUE(
      holds(input_text(model), "short side 256, bilinear with antialiasing, centre crop 224"));
  ModelDescription square;
  square.stretch = true;
  EXPECT_TRUE(holds(input_text(square), "; stretched to 256 x 256, bilinear with"));
  for (const char* text : {R"({"interpolation":"bilinear with antialiasing"})",
                           R"({"interpolation":"bilinear"})", "{}"}) {
    ModelDescription read;
    read_model_text(text, "a.onnx", read);
    EXPECT_EQ(read.interpolation, "bilinear") << text;
  }
}

TEST(ModelText, SaysTheHeadAndWhatIsReplaced) {
  ModelDescription own;
  own.pool = "gem";
  own.gem_p = 4;
  own.dim = 64;
  own.crop = 96;
  own.stretch = true;
  own.upright = true;
  EXPECT_EQ(head_text(own), "gem pooling with the exponent 4, an embedding of 64 numbers");
  ModelDescription other;
  other.pool = "max";
  other.dim = 0;
  other.stride_in_1x1 = true;
  EXPECT_EQ(head_text(other),
            "maximum pooling, no embedding layer; strides in the first 1x1 of a block");
  EXPECT_EQ(
      replaced_text(own, other),
      "pool \"max\" in place of \"gem\", gem_p 3.0 in place of 4.0, stride_in_1x1 true in "
      "place of false, crop 224 in place of 96, stretch false in place of true, exif \"ignore\" in "
      "place of \"turn\"");
  own.dim = 1;
  own.source_sha256 = "of other weights";
  ModelDescription same = own;
  same.dim = 2;
  same.source_sha256 = "";
  EXPECT_EQ(replaced_text(own, same), "") << "the weights say these themselves";
}

TEST(ModelText, ComesBackAsItWent) {
  ModelDescription model;
  model.pool = "gem";
  model.gem_p = 2.5;
  model.stride_in_1x1 = true;
  model.input_mean = {0.1, 0.2, 0.3};
  model.input_std = {0.4, 0.5, 0.6};
  model.input_scale = 3;
  model.channel_order = "BGR";
  model.resize = 232;
  model.interpolation = "bicubic";
  model.crop = 192;
  model.stretch = true;
  model.upright = true;
  ModelDescription read;
  read_model_text(model_text(model), "a.onnx", read);
  EXPECT_TRUE(read == model);
}

// Left aside, what another program or damage made of a field would be another network, with no
// word.
TEST(ModelText, FieldsOfOtherTypesAreRefused) {
  const std::pair<std::string, std::string> texts[] = {
      {R"({"crop":224.9})", R"(has '224.9' where crop should be an integer)"},
      {R"({"resize":1e300})", R"(has '1e+300' where resize should be an integer)"},
      {R"({"input_std":[1,2,3,4,5]})", "where input_std should be three numbers"},
      {R"({"input_mean":[1,2]})", "where input_mean should be three numbers"},
      {R"({"input_mean":[1,2,"3"]})", "where input_mean should be three numbers"},
      {R"({"stretch":1})", "where stretch should be true or false"},
      {R"({"gem_p":null})", "where gem_p should be a number"},
      {R"({"pool":7})", "where pool should be a text"},
      {std::string("{\"pool\":\"max\"}\0x", 16), "is not what Rankine writes"},
      {"[1]", "is not what Rankine writes"},
      {"[1", "is not what Rankine writes"},
      {"", "is not what Rankine writes"},
      {"{\"x\":\"" + std::string(64 << 10, 'x') + "\"}", "is not what Rankine writes"}};
  for (const auto& [text, found] : texts) {
    ModelDescription read;
    const std::string message =
        message_of<InputError>([&, &of = text] { read_model_text(of, "a.onnx", read); });
    EXPECT_TRUE(holds(message, "a.onnx: its metadata \"rankine\"")) << text << "\n" << message;
    EXPECT_TRUE(holds(message, found)) << text << "\n" << message;
  }
}

}  // namespace
}  // namespace rk
