#include "weights/foreign/torch_loader.h"

#include "weights/architectures/registry.h"
#include "weights/written_by.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

namespace rk {
namespace {

// The layer is called `embedding` and lies outside the network, so that Rankine finds both in a
// state_dict(). `rgb` is a module-level function, so that worker processes that load pictures can
// use it.
constexpr const char* kFrame = R"("""Embeds pictures by {0}{1}: rows of unit length."""
import torch
from safetensors.torch import load_file
from torchvision import models, transforms
{10}

def rgb(image):
    return {9}.convert("RGB")


transform = transforms.Compose([  # a PIL image -> one of `images`
    rgb, transforms.Resize({2}), transforms.CenterCrop({3}),
    transforms.ToTensor(), transforms.Normalize([{4}], [{5}])])


class Embedder(torch.nn.Module):
    def __init__(self, weights=__file__.removesuffix(".py") + "{1}"):
        super().__init__()
        self.body = models.{6}
        self.body.fc, self.embedding = torch.nn.Identity(), {7}
{8}        state = {{k: v for k, v in load_file(weights).items() if not k.startswith("fc.")}}
        own = {{k if k.startswith("embedding.") else "body." + k: v for k, v in state.items()}}
        self.load_state_dict(own)
        self.eval()

    def forward(self, images):
        return torch.nn.functional.normalize(self.embedding(self.body(images)))
)";

// As data/images/exif.cpp reads it: ImageOps.exif_transpose also turns by XMP and by text chunks of
// a PNG.
constexpr const char* kUprightPicture = R"(import struct
from PIL import Image

TURNS = {2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180,
         4: Image.Transpose.FLIP_TOP_BOTTOM, 5: Image.Transpose.TRANSPOSE,
         6: Image.Transpose.ROTATE_270, 7: Image.Transpose.TRANSVERSE, 8: Image.Transpose.ROTATE_90}


def upright(image):
    image.load()  # the EXIF block of a PNG may lie behind its pixels
    exif = Image.Exif()
    try:
        exif.load(image.info.get("exif", b""))
        return image.transpose(TURNS[exif.get(0x0112)])
    except (KeyError, SyntaxError, struct.error):  # upright already, or a damaged block
        return image
)";

// As in kernels/blocks/global_pool_block.h, powers are those of shares of the largest value: powers
// of the values themselves may overflow or vanish in float.
constexpr const char* kGem = R"(

class GeM(torch.nn.Module):
    def forward(self, x):
        x = x.clamp(min=1e-6)
        top = x.amax((2, 3), keepdim=True)
        return top * (x / top).pow({0}).mean((2, 3), keepdim=True).pow(1 / {0})
)";

// torchvision has the blocks of resnet20, but not the network.
constexpr const char* kSmallResNet =
    R"(        block, make, self.body.inplanes = models.resnet.BasicBlock, self.body._make_layer, 16
        self.body.conv1 = torch.nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.body.bn1 = torch.nn.BatchNorm2d(16)
        self.body.layer1, self.body.layer2 = make(block, 16, 3), make(block, 32, 3, 2)
        self.body.layer3 = make(block, 64, 3, 2)
        self.body.maxpool = self.body.layer4 = torch.nn.Identity()
)";

// Makes a file name, which may contain anything, safe within """ of Python.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c >= ' ' && c <= '~' && c != '"' && c != '\\' ? c : '_';
  }
  return out;
}

}  // namespace

std::string torch_loader(const ModelDescription& model, const std::string& weights) {
  const std::filesystem::path file_name(weights);
  const bool resnet = model.arch.starts_with("resnet");
  const bool small = model.arch == "resnet20";
  std::string changes = small ? kSmallResNet : "";
  if (model.pool == "max") changes += "        self.body.avgpool = torch.nn.AdaptiveMaxPool2d(1)\n";
  if (model.pool == "gem") changes += "        self.body.avgpool = GeM()\n";
  if (model.stride_in_1x1 && model.arch == "resnet50") {
    changes +=
        "        for block in filter(lambda m: hasattr(m, \"conv3\"), self.body.modules()):\n"
        "            block.conv1.stride, block.conv2.stride = block.conv2.stride, (1, 1)\n";
  }
  if (!resnet) changes += "        self.body.dropout = torch.nn.Identity()\n";
  const std::string head = model.dim == 0 ? "torch.nn.Identity()"
                                          : fmt::format("torch.nn.Linear({}, {})",
                                                        network_features(model.arch), model.dim);
  const std::string body = small    ? "resnet18()"
                           : resnet ? model.arch + "()"
                                    : model.arch + "(aux_logits=False, init_weights=False)";
  std::string file = fmt::format(
      kFrame, plain(file_name.stem().string()), plain(file_name.extension().string()),
      model.stretch ? fmt::format("({0}, {0})", model.resize) : std::to_string(model.resize),
      model.crop, fmt::join(model.input_mean, ", "), fmt::join(model.input_std, ", "), body, head,
      changes, model.upright ? "upright(image)" : "image", model.upright ? kUprightPicture : "");
  if (model.pool == "gem") {
    file.insert(file.find("\n\nclass Embedder"), fmt::format(kGem, model.gem_p));
  }
  return signed_python(file);
}

}  // namespace rk
