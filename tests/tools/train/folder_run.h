// Base of tests that run the programs on folders of pictures, in a temporary folder.
#pragma once

#include "tests/data/picture_folder.h"
#include "tests/support/child_process.h"
#include "tests/support/words.h"
#include "tests/tools/train/tiny_run.h"
#include "weights/hdf5/file.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rk {

class FolderRun : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<PictureFolder>();
    folder_->classes("flat/c", 8, 4);
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static std::string in(const std::string& name) { return folder_->in(name); }
  static std::string flat() { return "folder:" + in("flat"); }
  // The best checkpoint of a run. `run` trains one step on the classes of `flat` that are not held
  // out, when it is first asked for: most tests do without, and ctest starts a process for each.
  static std::string best(const std::string& run = "run") {
    const std::string file = in(run + "/best.h5");
    if (run == "run" && !std::filesystem::exists(file)) {
      const Finished done = train("flat", run, {"--data", flat() + ",val_classes=0.25"});
      EXPECT_EQ(done.code, 0) << done.err;
    }
    return file;
  }
  static Finished train(const std::string& data, const std::string& out,
                        const std::vector<std::string>& more = {}) {
    const std::vector<std::string> words =
        joined({RK_BIN "/train", "--data", "folder:" + in(data), "--out", in(out), "--batch", "4",
                "--per-class", "2", "--batches", "1", "--epochs", "1", "--optimizer", "sgd",
                "--momentum", "0", "--threads", "2"},
               kTinyNetwork);
    return run_to_end(with_flags(words, more), folder_->path().string());
  }
  static Finished eval(std::vector<std::string> words) {
    if (std::find(words.begin(), words.end(), "--threads") == words.end()) {
      words = joined(std::move(words), {"--threads", "2"});
    }
    return run_to_end(joined({RK_BIN "/eval"}, words), folder_->path().string());
  }
  static Finished convert(const std::vector<std::string>& words) {
    return run_to_end(joined({RK_BIN "/convert"}, words), folder_->path().string());
  }
  // Embeds a folder with the trained network.
  static Finished embed(const std::string& data, const std::string& to,
                        const std::string& run = "run") {
    return eval({"--checkpoint", best(run), "--data", "folder:" + in(data), "--save-embeddings",
                 in(to), "--json", in("embed.json")});
  }
  // Writes an HDF5 file as another program, or an earlier version, may have.
  static void write_others_hdf5(const std::string& name, const std::string& dataset,
                                const std::string& text = "") {
    Hdf5Writer file;
    const std::vector<float> values(4, 1);
    file.write(dataset, {2, 2}, values.data());
    if (!text.empty()) file.write_text(text, {std::string(64, 'a')});
    folder_->write(name, file.finish());
  }
  static nlohmann::json result(const std::string& name) {
    return nlohmann::json::parse(file_text(in(name)));
  }

  static inline std::unique_ptr<PictureFolder> folder_;
};

}  // namespace rk
