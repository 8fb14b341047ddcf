// A training run that takes a fraction of a second: drawn characters of 16 pixels, half of the
// classes held out, and a network whose checkpoints take a megabyte.
#pragma once

#include "tests/support/words.h"

#include <string>
#include <utility>
#include <vector>

namespace rk {

inline const std::vector<std::string> kTinyNetwork = {"--arch",       "resnet20", "--dim",    "16",
                                                      "--image-size", "16",       "--resize", "16"};

// The command line without what each test chooses: steps, optimizer, threads, --out. Training
// classes are not evaluated, because tests count when files are opened.
inline std::vector<std::string> tiny_run() {
  return joined({RK_BIN "/train", "--data",
                 "glyphs:classes=8,test_classes=8,alphabets=2,test_alphabets=2,images=8,size=32",
                 "--batch", "16", "--eval-train", "0"},
                kTinyNetwork);
}

// `words`, then `more`; a flag of `more` replaces the same flag and its value in `words`.
inline std::vector<std::string> with_flags(std::vector<std::string> words,
                                           const std::vector<std::string>& more) {
  for (const std::string& word : more) {
    if (word.starts_with("--")) words = without(std::move(words), word);
    words.push_back(word);
  }
  return words;
}

}  // namespace rk
