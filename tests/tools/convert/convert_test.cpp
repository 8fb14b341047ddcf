// convert as a user runs it: weights in, weights out, and what must be refused.
#include "tests/support/child_process.h"
#include "tests/support/folder_test.h"
#include "tests/support/messages.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/weights/torch_network.h"
#include "tests/support/weights/torchvision.h"
#include "tests/support/words.h"
#include "tests/tools/train/tiny_run.h"
#include "weights/architectures/registry.h"
#include "weights/checkpoint.h"
#include "weights/foreign/network_weights.h"
#include "weights/foreign/torch_loader.h"
#include "weights/foreign/weight_files.h"
#include "weights/hdf5/file.h"
#include "weights/tensor_files/safetensors.h"
#include "weights/tensor_files/tensor_file.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <regex>

namespace rk {
namespace {

class Convert : public FolderTest<TemporaryFolder> {
 protected:
  Finished run(const std::string& program, const std::vector<std::string>& arguments) const {
    return run_to_end(joined(joined({RK_BIN "/" + program}, arguments), {"--device", "cpu"}),
                      folder_.path().string());
  }
};

TEST_F(Convert, ThereAndBack) {
  folder_.write("r18.pth", torch_zip(torch_network("resnet18", 3)));
  const Finished there = run("convert", {in("r18.pth"), in("r18.h5"), "--json", in("r.json")});
  ASSERT_EQ(there.code, 0) << there.err;
  for (const char* part :
       {"PyTorch zip archive, 122 tensors",
        "torchvision's names: 122 tensors of a resnet18, with a "
        "classifier of 3 classes",
        "\n  average pooling, no embedding layer\n"
        "wants RGB pixels / 255, less the mean 0.485 0.456 0.406, / 0.229 0.224 0.225; short "
        "side 256, bilinear with antialiasing, centre crop 224",
        "read again and equal"}) {
    EXPECT_TRUE(holds(there.out, part));
  }
  const auto json = nlohmann::json::parse(file_text(in("r.json")));
  EXPECT_EQ(json.at("arch"), "resnet18");
  EXPECT_EQ(json.at("mapped"), 122);
  const Checkpoint ours(in("r18.h5"));
  EXPECT_FALSE(ours.has_run());
  EXPECT_EQ(ours.model().source_sha256, json.at("sha256").get<std::string>());
  EXPECT_EQ(ours.counter("bn1.num_batches_tracked"), kMadeUpCount);

  const Finished back = run("convert", {in("r18.h5"), in("r18.safetensors")});
  ASSERT_EQ(back.code, 0) << back.err;
  const TensorFile first = read_tensor_file(in("r18.pth"));
  const TensorFile last = read_tensor_file(in("r18.safetensors"));
  EXPECT_EQ(last.metadata.at("format"), "pt");
  ASSERT_EQ(first.tensors.size(), last.tensors.size());
  for (const StoredTensor& tensor : first.tensors) {
    const auto same = std::find_if(last.tensors.begin(), last.tensors.end(),
                                   [&](const auto& t) { return t.name == tensor.name; });
    ASSERT_NE(same, last.tensors.end()) << tensor.name;
    EXPECT_EQ(contiguous_bytes(tensor), contiguous_bytes(*same)) << tensor.name;
  }
}

// Of several thousand classes or a few, only a user knows whether they are none.
TEST_F(Convert, TheClassifierMayMakeTheEmbedding) {
  folder_.write("fc.pth", torch_zip(torch_network("resnet20", 7)));
  const Finished unsure = run("convert", {in("fc.pth"), "--dry-run"});
  EXPECT_TRUE(holds(unsure.out, "with a classifier of 7 classes"));
  EXPECT_TRUE(holds(unsure.out, "if they are no classes but the embedding, give --fc embedding"));
  const Finished sure =
      run("convert", {in("fc.pth"), in("fc.h5"), "--fc", "embedding", "--input-mean", "0.5"});
  ASSERT_EQ(sure.code, 0) << sure.err;
  EXPECT_TRUE(holds(sure.out, "with an embedding layer of 7"));
  EXPECT_FALSE(holds(sure.out, "--fc")) << sure.out;
  EXPECT_EQ(Checkpoint(in("fc.h5")).model().dim, 7);
  EXPECT_EQ(run("convert", {in("fc.h5"), in("twice.h5"), "--fc", "embedding"}).code, 3);
}

// A state_dict says nothing about images and pooling: flags or another file may give them.
TEST_F(Convert, ImagesAndPoolingMayBeGiven) {
  folder_.write("r20.pth", torch_zip(torch_network("resnet20", 3)));
  // The numbers of a list end where the files begin.
  ASSERT_EQ(run("convert", {"--input-mean", "0.48,0.45", "0.4", in("r20.pth"), "--input-std", "0.1",
                            "0.2", "0.3", in("colours.h5")})
                .code,
            0);
  EXPECT_EQ(Checkpoint(in("colours.h5")).model().input_mean,
            (std::array<double, 3>{0.48, 0.45, 0.4}));
  EXPECT_EQ(Checkpoint(in("colours.h5")).model().input_std, (std::array<double, 3>{0.1, 0.2, 0.3}));
  const Finished given =
      run("convert", {"--input-mean", "0.3", in("r20.pth"), in("given.h5"), "--input-std", "0.5"});
  ASSERT_EQ(given.code, 0) << given.err;
  EXPECT_TRUE(holds(given.out, "less the mean 0.3 0.3 0.3, / 0.5 0.5 0.5;"));
  EXPECT_EQ(Checkpoint(in("given.h5")).model().input_mean[2], 0.3);
  TorchContent tuned = torch_network("resnet20", 3);
  for (TorchContent::Tensor& tensor : tuned.tensors) tensor.name.insert(0, "body.");
  add_tensor(tuned, "embedding.weight", {2, 64}, std::vector<float>(128, 0.5F));
  add_tensor(tuned, "embedding.bias", {2}, {1, 2});
  folder_.write("tuned.pth", torch_zip(tuned));
  const Finished unsaid = run("convert", {in("tuned.pth"), "--dry-run"});
  EXPECT_TRUE(holds(unsaid.out, "with an embedding layer of 2"));
  EXPECT_TRUE(holds(unsaid.out, "does not say how the network of its embedding pools"));
  const Finished like = run("convert", {in("tuned.pth"), in("tuned.h5"), "--like", in("given.h5")});
  ASSERT_EQ(like.code, 0) << like.err;
  EXPECT_FALSE(holds(like.out, "does not say how")) << like.out;
  // What was made of it for PyTorch says the same; a file of PyTorch's own says nothing.
  ASSERT_EQ(run("convert", {in("given.h5"), in("given.safetensors")}).code, 0);
  ASSERT_EQ(
      run("convert", {in("tuned.pth"), in("also.h5"), "--like", in("given.safetensors")}).code, 0);
  EXPECT_EQ(Checkpoint(in("also.h5")).model().input_mean[2], 0.3);
  // Of a file that says it itself, what is replaced is said.
  EXPECT_FALSE(holds(like.err, "replaces")) << like.err;
  ASSERT_EQ(run("convert", {in("r20.pth"), in("other.h5")}).code, 0);
  for (const char* own : {"given.h5", "given.safetensors"}) {
    const Finished replaced =
        run("convert", {in(own), in("y.h5"), "--like", in("other.h5"), "--force"});
    ASSERT_EQ(replaced.code, 0) << replaced.err;
    EXPECT_TRUE(holds(replaced.err, "note: --like " + in("other.h5") + ": replaces what " +
                                        in(own) + " says of itself: input_mean "));
    EXPECT_TRUE(holds(replaced.err, " in place of [0.3,0.3,0.3], input_std "));
    EXPECT_EQ(Checkpoint(in("y.h5")).model().input_mean[2],
              Checkpoint(in("other.h5")).model().input_mean[2]);
  }
  const Finished same =
      run("convert", {in("given.h5"), in("y.h5"), "--like", in("given.safetensors"), "--force"});
  EXPECT_FALSE(holds(same.err, "replaces")) << same.err;
  const Finished none = run("convert", {in("tuned.pth"), in("x.h5"), "--like", in("r20.pth")});
  EXPECT_EQ(none.code, 3);
  EXPECT_TRUE(holds(none.err, "r20.pth: does not say how its network pools"));
  const Checkpoint both(in("tuned.h5"));
  EXPECT_EQ(both.model().input_mean[2], 0.3);
  EXPECT_EQ(both.model().input_std[0], 0.5);
  EXPECT_EQ(both.model().dim, 2);
  EXPECT_TRUE(both.weight_dims("embedding.weight").has_value());
  EXPECT_EQ(run("convert", {in("r20.pth"), in("x.h5"), "--input-std", "0"}).code, 2);
}

TEST_F(Convert, ListAndDryRunWriteNothing) {
  folder_.write("r20.pth", torch_zip(torch_network("resnet20", 3)));
  const Finished list = run("convert", {in("r20.pth"), "--list"});
  EXPECT_EQ(list.code, 0);
  EXPECT_TRUE(holds(list.out, "fc.bias"));
  EXPECT_TRUE(std::regex_search(list.out, std::regex("fc\\.bias +F32 +\\[3\\] +1 +3 +2\n")))
      << list.out;
  const Finished dry = run("convert", {in("r20.pth"), in("r20.h5"), "--dry-run"});
  EXPECT_EQ(dry.code, 0);
  EXPECT_TRUE(holds(dry.out, "nothing was written to " + in("r20.h5") + ", as Rankine"));
  EXPECT_FALSE(std::filesystem::exists(in("r20.h5")));
  // What would be refused is refused.
  folder_.write("mine.h5", "not a result");
  for (const auto& [out, code] : {std::pair{"mine.h5", 3}, {"x.pth", 2}, {"none/x.h5", 3}}) {
    EXPECT_EQ(run("convert", {in("r20.pth"), in(out)}).code, code) << out;
    EXPECT_EQ(run("convert", {in("r20.pth"), in(out), "--dry-run"}).code, code) << out;
  }
}

// torchvision's names end in digits of the file's sum, others in a date.
TEST_F(Convert, ANameMayHoldASum) {
  const std::string bytes = torch_zip(torch_network("resnet20", 3));
  const auto said = [&](const std::string& name) {
    folder_.write(name, bytes);
    const Finished done = run("convert", {in(name), "--dry-run"});
    EXPECT_EQ(done.code, 0) << done.err;
    return done.out;
  };
  EXPECT_TRUE(holds(said("mine-2025120a.pth"), "the SHA-256 does not begin with 2025120a, as its"));
  EXPECT_FALSE(holds(said("mine-20251203.pth"), "20251203, as its name says"));
  const std::string text = said("mine.pth");
  const std::size_t sum = text.find("SHA-256 ");
  ASSERT_NE(sum, std::string::npos) << text;
  const std::string digits = text.substr(sum + 8, 8);
  EXPECT_TRUE(holds(said("mine-" + digits + ".pth"),
                    "the SHA-256 begins with " + digits + ", as its name says"));
}

// One long name must not lengthen the other lines of --list, and values must be read in parts,
// whatever their layout in the file.
TEST_F(Convert, AListOfLongNamesAndManyValues) {
  TorchContent content;
  constexpr std::size_t kCount = 2'100'000;
  std::string bytes(kCount, '\0');
  for (std::size_t i = 0; i < kCount; ++i) bytes[i] = static_cast<char>(i % 200);
  bytes.back() = '\xff';
  content.storages.push_back({"0", ElementType::kU8, bytes});
  content.tensors.push_back({"rows", 0, {1, 3, 700'000}, {2'100'000, 700'000, 1}, 0});
  content.tensors.push_back({"columns", 0, {700'000, 3}, {1, 700'000}, 0});
  content.tensors.push_back({"one", 0, {1, 2'100'000}, {2'100'000, 1}, 0});
  content.tensors.push_back({std::string(500, 'n'), 0, {2}, {1}, 0});
  folder_.write("long.pth", torch_zip(content));
  const Finished list = run("convert", {in("long.pth"), "--list", "-q"});
  ASSERT_EQ(list.code, 0) << list.err;
  EXPECT_EQ(list.out.find("type"), 82U) << list.out;
  EXPECT_TRUE(holds(list.out, std::string(500, 'n') + "  U8    [2] "));
  for (const char* line : {"rows +U8 +\\[1, 3, 700000\\] +0 +255 +99\\.5\n",
                           "columns +U8 +\\[700000, 3\\] +0 +255 +99\\.5\n",
                           "one +U8 +\\[1, 2100000\\] +0 +255 +99\\.5\n"}) {
    EXPECT_TRUE(std::regex_search(list.out, std::regex(line))) << line << list.out;
  }
}

TEST_F(Convert, AListOfTheLargestIntegers) {
  const std::uint64_t value = ~std::uint64_t{1};
  folder_.write("u.safetensors",
                write_safetensors(
                    {{"large", ElementType::kU64, {1}, std::as_bytes(std::span(&value, 1))}}, {}));
  const Finished list = run("convert", {in("u.safetensors"), "--list", "-q"});
  EXPECT_TRUE(std::regex_search(list.out, std::regex("large +U64 +\\[1\\] +1\\.8447e\\+19 ")))
      << list.out;
}

// A signal while a file is read, while one is written, and just before the rename.
TEST_F(Convert, ASignalStopsItAndNothingIsWritten) {
  folder_.write("r18.pth", torch_zip(torch_network("resnet18", 3)));
  folder_.write("o.h5", "");
  for (const int signal : {SIGINT, SIGTERM}) {
    for (const char* when : {"read,2,1,s{},/r18.pth", "write,1,1,s{},o.h5", "fsync,0,1,s{},o.h5"}) {
      const Finished done =
          run_to_end({"/usr/bin/env", fmt::format("LD_PRELOAD={}", RK_FAKE_SYSTEM_CALLS),
                      "RK_FAULTS=" + fmt::format(fmt::runtime(when), signal), RK_BIN "/convert",
                      in("r18.pth"), in("o.h5"), "--device", "cpu"},
                     folder_.path().string());
      EXPECT_EQ(done.code, 128 + signal) << when << done.err;
      EXPECT_TRUE(holds(done.err, "; nothing was written")) << when << done.err;
      EXPECT_EQ(file_text(in("o.h5")), "") << when;
    }
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    EXPECT_FALSE(holds(entry.path().filename().string(), ".tmp.")) << entry.path();
  }
}

TEST_F(Convert, QuietIsSilentButForWhatIsAskedToBeShown) {
  folder_.write("r20.pth", torch_zip(torch_network("resnet20", 3)));
  const Finished quiet = run("convert", {in("r20.pth"), in("r20.h5"), "-q"});
  EXPECT_EQ(quiet.code, 0);
  EXPECT_EQ(quiet.out + quiet.err, "");
  EXPECT_TRUE(std::filesystem::exists(in("r20.h5")));
  const Finished list = run("convert", {in("r20.pth"), "--list", "-q"});
  EXPECT_TRUE(list.out.starts_with("name ")) << list.out;
  EXPECT_TRUE(holds(run("convert", {in("r20.pth"), "--dry-run", "-q"}).out, "nothing was written"));
}

TEST_F(Convert, WhatIsRefusedLeavesTheOutputAsItWas) {
  folder_.write("r20.pth", torch_zip(torch_network("resnet20", 3)));
  const auto refused = [&](const std::vector<std::string>& arguments, int code,
                           const std::string& why) {
    const Finished done = run("convert", arguments);
    EXPECT_EQ(done.code, code) << done.err;
    EXPECT_TRUE(holds(done.err, why));
    EXPECT_EQ(std::count(done.err.begin(), done.err.end(), '\n'), 1) << done.err;
  };
  refused({in("r20.pth")}, 2, "OUT is missing");
  refused({in("r20.pth"), in("r20.pth")}, 2, "is the file that is read");
  refused({in("none.pth"), in("o.h5")}, 3, "none.pth: cannot be opened");
  refused({in("r20.pth"), in("nowhere/o.h5")}, 3, "there is no folder");
  refused({in("r20.pth"), in("o.h5"), "--from", "keras"}, 3, "not what --from keras says");
  folder_.write("notes.txt", "mine");
  refused({in("r20.pth"), in("notes.txt")}, 2, "weights are written as HDF5 or safetensors or");
  folder_.write("notes", "mine");
  refused({in("r20.pth"), in("notes")}, 3, "is a file of another kind");
  EXPECT_EQ(file_text(in("notes")), "mine");

  TorchContent content = torch_network("resnet20", 3);
  const float not_a_number = std::nanf("");
  std::memcpy(content.storages[0].bytes.data(), &not_a_number, sizeof(not_a_number));
  folder_.write("nan.pth", torch_zip(content));
  folder_.write("o.h5", "");
  for (const char* force : {"--no-crc", "--force"}) {  // Rankine's own weights have no NaN
    const Finished nan = run("convert", {in("nan.pth"), in("o.h5"), force});
    EXPECT_EQ(nan.code, 3);
    EXPECT_TRUE(holds(nan.err,
                      "conv1.weight: 1 value not finite); take another file, or write "
                      "safetensors with --force"));
    EXPECT_EQ(file_text(in("o.h5")), "");
  }
  const std::vector<std::string> exported{in("nan.pth"), in("o.safetensors")};
  const Finished nan = run("convert", exported);
  EXPECT_EQ(nan.code, 3);
  EXPECT_TRUE(holds(nan.err, "conv1.weight: 1 value not finite); take another file, or --force"));
  EXPECT_FALSE(std::filesystem::exists(in("o.safetensors")));
  const Finished forced = run("convert", {exported[0], exported[1], "--force"});
  EXPECT_EQ(forced.code, 0) << forced.err;
  EXPECT_TRUE(holds(forced.out, "conv1.weight: 1 value not finite"));
  EXPECT_TRUE(std::filesystem::exists(in("o.safetensors")));
}

// An output that cannot be written must be answered like any bad file: one line, exit code 3, and
// no output is changed.
TEST_F(Convert, Case45WhatCannotBeWrittenTo) {
  folder_.write("r20.pth", torch_zip(torch_network("resnet20", 3)));
  ASSERT_EQ(::mkfifo(in("pipe").c_str(), 0600), 0);
  std::filesystem::create_directory(in("folder"));
  const auto refused = [&](const std::string& out, const std::string& why) {
    const Finished done = run("convert", {in("r20.pth"), out, "--to", "h5", "--force"});
    EXPECT_EQ(done.code, 3) << out << done.err;
    EXPECT_TRUE(holds(done.err, why));
    EXPECT_EQ(std::count(done.err.begin(), done.err.end(), '\n'), 1) << done.err;
  };
  refused(in("pipe"), "is not a regular file");
  refused("/dev/full", "is not a regular file");
  refused(in("folder"), "");
  refused("/proc/rankine.h5", "error: /proc/rankine.h5: ");
  refused(in("nowhere/o.h5"), "there is no folder");
  refused(in("r20.pth/o.h5"), "there is no folder");
  const Finished piped = run_to_end(
      {"/bin/sh", "-c", R"({ "$0" "$@"; echo "code $?" >&2; } | wc -c)", RK_BIN "/convert",
       in("r20.pth"), "/dev/stdout", "--to", "h5", "--force", "--device", "cpu"},
      folder_.path().string());
  EXPECT_TRUE(holds(piped.err, "error: /dev/stdout: is not a regular file"));
  EXPECT_TRUE(holds(piped.err, "code 3"));
  // A disk or quota that fills up in the middle of a file must leave the former file.
  ASSERT_EQ(run("convert", {in("r20.pth"), in("o.dat"), "--to", "h5"}).code, 0);
  const std::string before = file_text(in("o.dat"));
  for (const char* to : {"h5", "safetensors", "onnx"}) {
    const Finished full =
        run_to_end({"/bin/sh", "-c", R"(ulimit -f 400; exec "$0" "$@")", RK_BIN "/convert",
                    in("r20.pth"), in("o.dat"), "--to", to, "--force", "--device", "cpu"},
                   folder_.path().string());
    EXPECT_EQ(full.code, 3) << full.err;
    EXPECT_TRUE(holds(full.err, "o.dat: cannot be written"));
    EXPECT_EQ(file_text(in("o.dat")), before) << to;
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    EXPECT_FALSE(holds(entry.path().filename().string(), ".tmp.")) << entry.path();
  }
}

// The format must be the one that the name's ending says.
TEST_F(Convert, AnEndingIsOfItsFormat) {
  folder_.write("r20.pth", torch_zip(torch_network("resnet20", 3)));
  const auto refused = [&](const std::string& out, const std::string& to, const std::string& why) {
    const std::vector<std::string> words = {in("r20.pth"), in(out), "--force"};
    const Finished done = run("convert", to.empty() ? words : joined(words, {"--to", to}));
    EXPECT_EQ(done.code, 2) << out << done.err;
    EXPECT_TRUE(holds(done.err, in(out) + ": " + why));
    EXPECT_EQ(std::count(done.err.begin(), done.err.end(), '\n'), 1) << done.err;
    EXPECT_FALSE(std::filesystem::exists(in(out)));
  };
  refused("back.pth", "",
          "weights are written as HDF5 or safetensors or ONNX; call the file back.h5 or "
          "back.safetensors or back.onnx");
  refused("back.PT", "safetensors", "weights are written as safetensors; call the file back.safet");
  for (const char* name : {"back.bin", "back.pb", "back.msgpack"}) {
    refused(name, "", "weights are written as HDF5 or");
  }
  refused("back.npy", "", "weights are written as HDF5 or");
  refused("z.h5", "onnx", "weights are written as ONNX; call the file z.onnx");
  refused("z.hdf5", "onnx", "weights are written as ONNX; call the file z.onnx");
  refused("z.onnx", "h5", "weights are written as HDF5; call the file z.h5");
  refused("z.onnx", "safetensors", "weights are written as safetensors; call the file z.safet");
  // It would choose HDF5.
  refused("back.safetensor", "",
          "weights are written as HDF5 or safetensors or ONNX; call the file back.h5 or");
  // An ending in capitals counts as well; with --to, one that no format has may stand.
  EXPECT_TRUE(holds(run("convert", {in("r20.pth"), in("z.ONNX")}).out, "ONNX graph"));
  EXPECT_EQ(run("convert", {in("r20.pth"), in("z.xyz"), "--to", "h5"}).code, 0);
  EXPECT_EQ(run("convert", {in("r20.pth"), in("z.HDF5"), "--to", "h5"}).code, 0);
  EXPECT_EQ(run("convert", {in("z.HDF5"), "--list"}).code, 0);
  EXPECT_EQ(run("convert", {in("r20.pth"), in("z"), "--to", "safetensors"}).code, 0);
}

// `convert --from-run` must give PyTorch users weights and a short Python file that loads them.
TEST_F(Convert, ARunBecomesWeightsAndTheirLoader) {
  std::vector<std::string> words = tiny_run();
  words.erase(words.begin());
  const Finished trained =
      run("train",
          joined(words, {"--epochs", "1", "--batches", "1", "--pool", "gem", "--out", in("run")}));
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Finished done = run("convert", {"--from-run", in("run"), in("e.safetensors")});
  ASSERT_EQ(done.code, 0) << done.err;
  const TensorFile file = read_tensor_file(in("e.safetensors"));
  EXPECT_EQ(std::count_if(file.tensors.begin(), file.tensors.end(),
                          [](const auto& t) { return t.name.starts_with("embedding."); }),
            2);
  const std::string loader = file_text(in("e.py"));
  for (const char* part :
       {"BasicBlock", "make(block, 64, 3, 2)", "torch.nn.Linear(64, 16)", "GeM()",
        "transforms.Resize(16), transforms.CenterCrop(16)", "by e.safetensors:"}) {
    EXPECT_TRUE(holds(loader, part));
  }
  // A loader that hides what it imports could not be used; a keyword cannot be imported.
  const Finished hiding = run("convert", {"--from-run", in("run"), in("torch.safetensors")});
  EXPECT_EQ(hiding.code, 2);
  EXPECT_TRUE(holds(hiding.err, "torch.py beside it would hide Python's module torch"));
  EXPECT_FALSE(std::filesystem::exists(in("torch.safetensors")));
  const Finished keyword = run("convert", {"--from-run", in("run"), in("class.safetensors")});
  EXPECT_EQ(keyword.code, 0);
  EXPECT_TRUE(holds(keyword.err, "Python's `import` cannot name it"));
  const Finished same = run("convert", {"--from-run", in("run"), in("x.h5")});
  EXPECT_EQ(same.code, 2);
  EXPECT_TRUE(holds(same.err, "run/best.h5 is Rankine's file already"));
  // The graph of the same run needs no loader.
  const Finished graph = run("convert", {"--from-run", in("run"), in("g.onnx")});
  ASSERT_EQ(graph.code, 0) << graph.err;
  EXPECT_GT(std::filesystem::file_size(in("g.onnx")), std::size_t{1} << 20);
  // No loader is named where none is written.
  const Finished listed = run("convert", {"--from-run", in("run"), "--list"});
  EXPECT_EQ(listed.code, 0) << listed.err;
  EXPECT_FALSE(holds(listed.err, ".py")) << listed.err;

  // Without --from-run the output must say that torchvision alone cannot load it, and IN must be a
  // file, not a run's folder.
  const char* const alone = "torchvision has no embedding layer; `convert --from-run RUN";
  EXPECT_TRUE(holds(run("convert", {in("run/best.h5"), in("b.safetensors")}).out, alone));
  EXPECT_FALSE(holds(done.out + graph.out, alone));
  const Finished whole = run("convert", {in("run"), in("x.safetensors")});
  EXPECT_EQ(whole.code, 3);
  EXPECT_TRUE(holds(whole.err, "error: " + in("run") +
                                   ": is the folder of a run; take its best.h5 "
                                   "by --from-run " +
                                   in("run")));
  const Finished other = run("convert", {in("run/best.h5"), in("x.onnx"), "--arch", "resnet50"});
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(
      holds(other.err, "--arch resnet50: " + in("run/best.h5") + " holds a resnet20; leave"));
  EXPECT_EQ(run("convert", {in("run/best.h5"), in("x.onnx"), "--arch", "resnet20"}).code, 0);
  std::filesystem::remove(in("x.onnx"));
  EXPECT_FALSE(std::filesystem::exists(in("g.py")));
  // It may replace its own files, never a user's.
  EXPECT_EQ(run("convert", {"--from-run", in("run"), in("e.safetensors")}).code, 0);
  folder_.write("e.py", loader + "# mine\n");
  const Finished changed = run("convert", {"--from-run", in("run"), in("e.safetensors")});
  EXPECT_EQ(changed.code, 3);
  EXPECT_TRUE(holds(changed.err, "e.py: is a loader that was changed since convert wrote it"));
  EXPECT_EQ(file_text(in("e.py")), loader + "# mine\n");
  folder_.write("e.py", "import os\n");
  EXPECT_EQ(run("convert", {"--from-run", in("run"), in("e.safetensors")}).code, 3);
  EXPECT_EQ(file_text(in("e.py")), "import os\n");
  // Refused: folders that are no run, and a run that was stopped in its first epoch.
  const auto refused = [&](const std::string& folder, const std::string& why) {
    const Finished end = run("convert", {"--from-run", in(folder), in("x.onnx")});
    EXPECT_EQ(end.code, 3);
    EXPECT_TRUE(holds(end.err, "error: " + in(folder) + why));
  };
  refused("nothing", ": no such folder; give the folder that `train --out` wrote");
  refused("e.py", ": is no folder; give the folder that `train --out` wrote");
  std::filesystem::remove(in("run/best.h5"));
  refused("run", ": holds no best.h5 yet; let the run go on (`train --out " + in("run") +
                     " --resume auto`, with --epochs if it is over), or convert its last.h5");
  EXPECT_EQ(run("convert", {in("run/last.h5"), in("x.onnx")}).code, 0);
  std::filesystem::create_directory(in("hollow"));
  refused("hollow", ": holds no best.h5; give the folder that `train --out` wrote");
  folder_.write("hollow/best.h5", "text");
  refused("hollow", "/best.h5: is no checkpoint");
}

// Whatever a run's network, pooling and strides, its loader must be short enough to read.
TEST_F(Convert, StridesThatTorchvisionDoesNotKnowAreNoted) {
  folder_.write("r50.pth", torch_zip(torch_network("resnet50", 3)));
  NetworkWeights weights = network_weights(read_tensor_file(in("r50.pth")));
  for (const bool first : {false, true}) {
    weights.model.stride_in_1x1 = first;
    folder_.write("r50.h5", checkpoint_bytes(weights));
    const Finished end = run("convert", {in("r50.h5"), in("r50.safetensors")});
    ASSERT_EQ(end.code, 0) << end.err;
    EXPECT_EQ(holds(end.err, "has its strides in the 3x3 of a block: other features"), first)
        << end.err;
    EXPECT_FALSE(holds(run("convert", {in("r50.h5"), in("again.h5"), "--force"}).err, "strides"));
  }
}

TEST_F(Convert, ALoaderIsShort) {
  for (const std::string& arch : network_names()) {
    for (const char* pool : {"avg", "max", "gem"}) {
      for (const bool stride : {false, true}) {
        for (const std::int64_t dim : {0, 512}) {
          ModelDescription model;
          model.arch = arch;
          model.pool = pool;
          model.stride_in_1x1 = stride;
          model.dim = dim;
          model.upright = dim > 0;
          const std::string loader = torch_loader(model, "e.safetensors");
          // torchvision has only the blocks of resnet20, so its loader is longer.
          EXPECT_LE(std::count(loader.begin(), loader.end(), '\n'), arch == "resnet20" ? 58 : 54)
              << loader;
        }
      }
    }
  }
}

// In a file of torchvision's each network of the registry must be recognised, and be whole.
TEST_F(Convert, KnowsEveryNetwork) {
  for (const std::string& arch : network_names()) {
    SCOPED_TRACE(arch);
    TorchContent content;
    std::vector<std::string> names;
    std::vector<std::vector<std::int64_t>> dims;
    std::int64_t features = 0;
    for (const golden::NamedShape& tensor : golden::torchvision_network(arch)) {
      if (tensor.name == "fc.weight") features = tensor.dims[1];
      if (tensor.name.starts_with("fc.")) continue;
      names.push_back(tensor.name);
      dims.push_back(tensor.dims);
      if (tensor.dims.empty()) {
        add_counter(content, tensor.name, 4);
        continue;
      }
      std::size_t count = 1;
      for (const std::int64_t d : tensor.dims) count *= static_cast<std::size_t>(d);
      add_tensor(content, tensor.name, tensor.dims, std::vector<float>(count, 1.0F));
    }
    folder_.write("network.pth", torch_zip(content));
    const NetworkWeights weights = network_weights(read_tensor_file(in("network.pth")));
    EXPECT_EQ(weights.model.arch, arch);
    EXPECT_EQ(network_features(arch), features);
    std::vector<std::string> read_names;
    std::vector<std::vector<std::int64_t>> read_dims;
    for (const NetworkWeights::Tensor& tensor : weights.tensors) {
      read_names.push_back(tensor.name);
      read_dims.push_back(tensor.dims);
    }
    EXPECT_EQ(read_names, names);
    EXPECT_EQ(read_dims, dims);
  }
}

// Before any training, eval must compute the same features from the foreign file and from ours.
TEST_F(Convert, EvalTakesEitherFile) {
  folder_.write("r20.pth", torch_zip(torch_network("resnet20", 3)));
  ASSERT_EQ(run("convert", {in("r20.pth"), in("r20.h5")}).code, 0);
  const std::string data =
      "glyphs:classes=2,test_classes=3,alphabets=2,test_alphabets=1,images=2,size=40";
  std::vector<std::string> saved;
  for (const char* file : {"r20.pth", "r20.h5"}) {
    const Finished done = run("eval", {"--weights", in(file), "--data", data, "--save-embeddings",
                                       in(std::string(file) + ".e"), "--batch", "2"});
    ASSERT_EQ(done.code, 0) << done.err;
    saved.push_back(in(std::string(file) + ".e"));
  }
  const Hdf5Reader first(saved[0]), second(saved[1]);
  EXPECT_EQ(first.info("/embeddings").dims, (std::vector<std::int64_t>{6, 64}));
  EXPECT_EQ(first.read<float>("/embeddings"), second.read<float>("/embeddings"));
}

}  // namespace
}  // namespace rk
