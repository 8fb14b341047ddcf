// A training run of a second or two: drawn characters of 32 pixels, half of the classes held out.
#pragma once

#include <string>
#include <vector>

namespace rk {

// The program's words but for what a test chooses: steps, optimizer, threads, --out.
inline std::vector<std::string> tiny_run() {
  return {RK_BIN "/train",
          "--data",
          "glyphs:classes=8,test_classes=8,alphabets=2,test_alphabets=2,images=8,size=32",
          "--arch",
          "resnet18",
          "--dim",
          "16",
          "--image-size",
          "32",
          "--resize",
          "32",
          "--batch",
          "16"};
}

}  // namespace rk
