// Base of tests that run `train` as its users do, in a temporary folder: command lines, faults, and
// the files that a run leaves.
#pragma once

#include "tests/data/picture_folder.h"
#include "tests/support/child_process.h"
#include "tests/support/messages.h"
#include "tests/tools/train/tiny_run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace rk {

class TrainProgram : public testing::Test {
 protected:
  using Words = std::vector<std::string>;

  // Glyphs of 32 pixels, 2 epochs of `batches` steps. Plain SGD has no optimizer state, so saves
  // take a third of Adam's bytes; tests of optimizer state choose another optimizer.
  Words command(const std::string& out, const Words& more = {}, int batches = 3) const {
    Words words = tiny_run();
    for (const std::string& word :
         {std::string("--augment"), std::string("rotation=10,zoom_min=0.9"),
          std::string("--batches"), std::to_string(batches), std::string("--epochs"),
          std::string("2"), std::string("--lr"), std::string("0.001"), std::string("--optimizer"),
          std::string("sgd"), std::string("--momentum"), std::string("0"), std::string("--threads"),
          std::string("2"), std::string("--out"), in(out)}) {
      words.push_back(word);
    }
    return with_flags(words, more);
  }
  // The same on 64 pictures that are read from files again for every batch.
  Words on_pictures(const std::string& out, const Words& more = {}, int batches = 3) const {
    if (!std::filesystem::exists(in("pics"))) {
      folder_.classes("pics/train/c", 8, 8);
      folder_.classes("pics/test/t", 8, 8);
    }
    Words words = {"--data", "folder:" + in("pics"), "--cache", "0", "--workers", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return command(out, words, batches);
  }
  // A fault for with_faults() when pictures are opened for batch `batch` of on_pictures(). A
  // `fresh` run first opens all 64 once; then each batch opens 16, at most three batches before its
  // step.
  static std::string at_batch(int batch, bool fresh, const std::string& what, int count = 1) {
    return fmt::format("open,{},{},{},/pics/train/", (fresh ? 64 : 0) + 16 * batch, count, what);
  }
  // With system calls that fail or bring signals (tests/fake/system_calls.cpp).
  static Words with_faults(Words words, const std::string& faults, const std::string& trace = "") {
    words.insert(words.begin(), {"/usr/bin/env", fmt::format("LD_PRELOAD={}", RK_FAKE_SYSTEM_CALLS),
                                 fmt::format("RK_FAULTS={}", faults)});
    if (!trace.empty()) words.insert(words.begin() + 1, fmt::format("RK_TRACE={}", trace));
    return words;
  }
  // With standard streams redirected by a shell, for example by "2>/dev/full".
  static Words in_shell(const Words& words, const std::string& redirections) {
    std::string line = "exec";
    for (const std::string& word : words) line += " '" + word + "'";
    return {"/bin/sh", "-c", line + " " + redirections};
  }

  std::string in(const std::string& name) const { return (folder_.path() / name).string(); }
  Finished run(const Words& words) const { return run_to_end(words, folder_.path().string()); }
  Words resuming(const std::string& out, const Words& more = {}) const {
    Words words = {RK_BIN "/train", "--out", in(out), "--resume", "auto"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Finished resume(const std::string& out, const Words& more = {}) const {
    return run(resuming(out, more));
  }
  testing::AssertionResult same_file(const std::string& a, const std::string& b) const {
    const std::string left = file_text(in(a)), right = file_text(in(b));
    if (left.empty()) return testing::AssertionFailure() << a << " is empty or missing";
    if (left == right) return testing::AssertionSuccess();
    return testing::AssertionFailure() << a << " and " << b << " differ";
  }
  std::vector<nlohmann::json> metrics(const std::string& out) const {
    std::vector<nlohmann::json> lines;
    std::istringstream text(file_text(in(out + "/metrics.jsonl")));
    for (std::string line; std::getline(text, line);) {
      lines.push_back(nlohmann::json::parse(line));
    }
    return lines;
  }
  void damage(const std::string& file) const {
    std::string bytes = file_text(in(file));
    bytes[bytes.size() / 3] = static_cast<char>(bytes[bytes.size() / 3] ^ 1);
    std::ofstream(in(file), std::ios::binary) << bytes;
  }

  const PictureFolder folder_{};
};

}  // namespace rk
