// The Python file that loads exported weights into torchvision's network.
#include "weights/foreign/torch_loader.h"

#include "tests/support/messages.h"

#include <gtest/gtest.h>

#include <string>

namespace rk {
namespace {

// Pictures of every mode become RGB, but must be turned first: convert() may drop the orientation.
TEST(TorchLoader, TakesPicturesOfEveryMode) {
  ModelDescription model;
  const std::string loader = torch_loader(model, "r.safetensors");
  EXPECT_TRUE(holds(loader, "\n    return image.convert(\"RGB\")\n"));
  EXPECT_TRUE(holds(loader, "`images`\n    rgb, transforms.Resize(256)"));
  model.upright = true;
  EXPECT_TRUE(holds(torch_loader(model, "r.safetensors"),
                    "\n    return upright(image).convert(\"RGB\")\n"));
}

TEST(TorchLoader, PreparesPicturesAsTheNetworkWantsThem) {
  ModelDescription model;
  model.input_mean = {0.1, 0.2, 0.3};
  model.input_std = {0.4, 0.5, 0.6};
  model.resize = 232;
  model.crop = 192;
  const std::string loader = torch_loader(model, "r.safetensors");
  EXPECT_TRUE(holds(loader, "transforms.Resize(232), transforms.CenterCrop(192),"));
  EXPECT_TRUE(holds(loader, "transforms.Normalize([0.1, 0.2, 0.3], [0.4, 0.5, 0.6])"));
  model.stretch = true;
  EXPECT_TRUE(holds(torch_loader(model, "r.safetensors"),
                    "transforms.Resize((232, 232)), transforms.CenterCrop(192),"));
}

// Pillow finds the EXIF block of a PNG that lies behind its pixels only with them, and raises
// errors at a damaged block, by which nothing is turned here.
TEST(TorchLoader, TurnsByEveryExifBlockThatRankineReads) {
  ModelDescription model;
  model.upright = true;
  const std::string loader = torch_loader(model, "r.safetensors");
  EXPECT_LT(loader.find("image.load()"), loader.find("image.info.get(\"exif\"")) << loader;
  EXPECT_TRUE(holds(loader, "    except (KeyError, SyntaxError, struct.error):"));
  EXPECT_TRUE(holds(loader, "import struct\n"));
}

// Powers of the values themselves may overflow or vanish in float, those of shares of the largest
// do not.
TEST(TorchLoader, PoolsByPowersOfSharesOfTheLargest) {
  ModelDescription model;
  model.pool = "gem";
  model.gem_p = 48;
  EXPECT_TRUE(
      holds(torch_loader(model, "r.safetensors"),
            "        x = x.clamp(min=1e-6)\n"
            "        top = x.amax((2, 3), keepdim=True)\n"
            "        return top * (x / top).pow(48).mean((2, 3), keepdim=True).pow(1 / 48)\n"));
}

// A line that is in one model's loader and missing in the other's.
TEST(TorchLoader, ChangesTorchvisionsNetworkWhereRankinesDiffers) {
  const auto loader = [](const char* arch, auto&& change) {
    ModelDescription model;
    model.arch = arch;
    change(model);
    return torch_loader(model, "r.safetensors");
  };
  const auto as_it_is = [](ModelDescription&) {};
  const std::string plain = loader("resnet50", as_it_is);
  const std::string max_pool = "self.body.avgpool = torch.nn.AdaptiveMaxPool2d(1)\n";
  EXPECT_TRUE(holds(loader("resnet18", [](auto& model) { model.pool = "max"; }), max_pool));
  const std::string strides =
      "block.conv1.stride, block.conv2.stride = block.conv2.stride, (1, 1)\n";
  EXPECT_TRUE(holds(loader("resnet50", [](auto& model) { model.stride_in_1x1 = true; }), strides));
  const std::string dropout = "self.body.dropout = torch.nn.Identity()\n";
  const std::string googlenet = loader("googlenet", as_it_is);
  EXPECT_TRUE(holds(googlenet, dropout));
  EXPECT_TRUE(holds(googlenet, "googlenet(aux_logits=False, init_weights=False)"));
  for (const std::string& line : {max_pool, strides, dropout, std::string("aux_logits")}) {
    EXPECT_FALSE(holds(plain, line)) << line;
  }
}

// EXIF's orientations 2 to 8, by what undoes each (as data/images/exif.h says them).
TEST(TorchLoader, TurnsEveryOrientationBack) {
  ModelDescription model;
  EXPECT_FALSE(holds(torch_loader(model, "r.safetensors"), "ROTATE_90"));
  model.upright = true;
  const std::string loader = torch_loader(model, "r.safetensors");
  for (const char* turn : {"2: Image.Transpose.FLIP_LEFT_RIGHT,", "3: Image.Transpose.ROTATE_180,",
                           "4: Image.Transpose.FLIP_TOP_BOTTOM,", "5: Image.Transpose.TRANSPOSE,",
                           "6: Image.Transpose.ROTATE_270,", "7: Image.Transpose.TRANSVERSE,",
                           "8: Image.Transpose.ROTATE_90}"}) {
    EXPECT_TRUE(holds(loader, turn)) << turn;
  }
}

// A transform that holds a lambda cannot be sent to a worker process that loads pictures.
TEST(TorchLoader, IsMadeOfWhatCanBePickled) {
  for (const bool upright : {false, true}) {
    ModelDescription model;
    model.upright = upright;
    const std::string loader = torch_loader(model, "r.safetensors");
    const std::string transform = loader.substr(loader.find("transform = "));
    EXPECT_FALSE(holds(transform.substr(0, transform.find("class ")), "lambda")) << loader;
  }
}

// The loader must find its weights whatever the case of their ending.
TEST(TorchLoader, LoadsTheFileThatLiesBesideIt) {
  const std::string loader = torch_loader(ModelDescription(), "a.b.SAFETENSORS");
  EXPECT_TRUE(holds(loader, "Embeds pictures by a.b.SAFETENSORS:"));
  EXPECT_TRUE(holds(loader, "removesuffix(\".py\") + \".SAFETENSORS\")"));
  // What could end the comment is left out of it.
  EXPECT_TRUE(holds(torch_loader(ModelDescription(), "our \"best\" net\\1\n\xc3\xa9.safetensors"),
                    "Embeds pictures by our _best_ net_1___.safetensors:"));
}

}  // namespace
}  // namespace rk
