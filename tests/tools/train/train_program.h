// Base of tests that run `train` as its users do, in a temporary folder: command lines, faults, and
// the files that a run leaves.
#pragma once

#include "tests/data/picture_folder.h"
#include "tests/support/child_process.h"
#include "tests/support/folder_test.h"
#include "tests/support/messages.h"
#include "tests/support/shell_line.h"
#include "tests/support/words.h"
#include "tests/tools/train/tiny_run.h"
#include "weights/hdf5/file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace rk {

class TrainProgram : public FolderTest<PictureFolder> {
 protected:
  using Words = std::vector<std::string>;

  // Glyphs of 32 pixels, 2 epochs of `batches` steps. Plain SGD has no optimizer state, so saves
  // take a third of Adam's bytes; tests of optimizer state choose another optimizer.
  Words command(const std::string& out, const Words& more = {}, int batches = 3) const {
    const Words own = {"--augment",   "rotation=10,zoom_min=0.9",
                       "--batches",   std::to_string(batches),
                       "--epochs",    "2",
                       "--lr",        "0.001",
                       "--optimizer", "sgd",
                       "--momentum",  "0",
                       "--threads",   "2",
                       "--out",       in(out)};
    return with_flags(joined(tiny_run(), own), more);
  }
  // The same on 64 pictures that are read from files again for every batch.
  Words on_pictures(const std::string& out, const Words& more = {}, int batches = 3) const {
    if (!std::filesystem::exists(in("pics"))) {
      folder_.classes("pics/train/c", 8, 8);
      folder_.classes("pics/test/t", 8, 8);
    }
    return command(
        out, joined({"--data", "folder:" + in("pics"), "--cache", "0", "--workers", "1"}, more),
        batches);
  }
  // A fault for with_faults() when pictures are opened for batch `batch` of on_pictures(). A
  // `fresh` run first opens all 64 once; then each batch opens 16, at most three batches before its
  // step.
  static std::string at_batch(int batch, bool fresh, const std::string& what, int count = 1) {
    return fmt::format("open,{},{},{},/pics/train/", (fresh ? 64 : 0) + 16 * batch, count, what);
  }
  // With system calls that fail or bring signals (tests/fake/system_calls.cpp).
  static Words with_faults(const Words& words, const std::string& faults,
                           const std::string& trace = "") {
    Words front = {"/usr/bin/env", fmt::format("LD_PRELOAD={}", RK_FAKE_SYSTEM_CALLS),
                   fmt::format("RK_FAULTS={}", faults)};
    if (!trace.empty()) front.push_back(fmt::format("RK_TRACE={}", trace));
    return joined(front, words);
  }
  // On a machine with so much free memory.
  Words with_free(int mebibytes, const Words& words) const {
    folder_.write("meminfo", fmt::format("MemTotal: 9999999 kB\nMemAvailable: {} kB\n",
                                         std::int64_t{mebibytes} << 10));
    return joined({"/usr/bin/env", std::string("LD_PRELOAD=") + RK_FAKE_MEMINFO,
                   "RK_FAKE_MEMINFO_FILE=" + in("meminfo")},
                  words);
  }
  // With standard streams redirected by a shell, for example by "2>/dev/full".
  static Words in_shell(const Words& words, const std::string& redirections) {
    return {"/bin/sh", "-c", shell_line(words) + " " + redirections};
  }

  Finished run(const Words& words) const { return run_to_end(words, folder_.path().string()); }
  Words resuming(const std::string& out, const Words& more = {}) const {
    return joined({RK_BIN "/train", "--out", in(out), "--resume", "auto"}, more);
  }
  // `eval` of a checkpoint on what on_pictures() learns from.
  Words evaluating(const std::string& checkpoint, const Words& more) const {
    return joined({RK_BIN "/eval", "--checkpoint", in(checkpoint), "--data", "folder:" + in("pics"),
                   "--threads", "2"},
                  more);
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
  // The values of all tensors whose names have this ending, concatenated.
  std::vector<float> weights(const std::string& checkpoint, const std::string& ending = "") const {
    const Hdf5Reader file(in(checkpoint));
    std::vector<float> all;
    for (const std::string& path : file.datasets("/weights")) {
      if (!path.ends_with(ending) || file.info(path).kind != Hdf5Reader::Kind::kFloat) continue;
      const std::vector<float> values = file.read<float>(path);
      all.insert(all.end(), values.begin(), values.end());
    }
    EXPECT_FALSE(all.empty()) << ending;
    return all;
  }
  void damage(const std::string& file) const {
    std::string bytes = file_text(in(file));
    bytes[bytes.size() / 3] = static_cast<char>(bytes[bytes.size() / 3] ^ 1);
    std::ofstream(in(file), std::ios::binary) << bytes;
  }
};

}  // namespace rk
