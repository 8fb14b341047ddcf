// The seeds of fuzz targets that consist of a parser's answers, in the order in which readers ask
// for them. If a reader's order of questions changes, a seed is useless from that point on, and so
// is its target: record the seeds anew with RK_RECORD_SEEDS=1.
#include "engine/base/text_of.h"
#include "tests/fuzz/answers_to_fuzz.h"
#include "tests/fuzz/look_at_checkpoint.h"
#include "tests/fuzz/look_at_embeddings.h"
#include "tests/support/temporary_folder.h"
#include "weights/hdf5/questions.h"
#include "weights/hdf5/server.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace rk {
namespace {

using Bytes = std::vector<std::byte>;

// The input that makes a target's parser answer as the library does for `file`: a byte that chooses
// the reader, then each answer after its length. `once` omits answers to repeated questions.
template <class Look> Bytes recorded(const Bytes& file, bool once, const Look& look) {
  Hdf5Server server(file, "made up");
  Bytes slot(kHdf5SlotBytes), all = {std::byte{1}};
  std::set<Bytes> asked;
  look(reader_of([&](std::span<const std::byte> question) {
    std::ranges::copy(question, slot.begin());
    std::size_t size = 0;
    try {
      size = server(slot, question.size());
    } catch (const std::exception&) {
      // A refusal becomes an empty answer, which no reader accepts.
    }
    Bytes answer(slot.begin(), slot.begin() + static_cast<std::ptrdiff_t>(size));
    if (asked.emplace(question.begin(), question.end()).second || !once) {
      all.push_back(static_cast<std::byte>(size % 256));
      all.push_back(static_cast<std::byte>(size / 256));
      all.insert(all.end(), answer.begin(), answer.end());
    }
    return answer;
  }));
  return all;
}

void expect_seed(const std::string& name, const Bytes& bytes) {
  const auto path = std::filesystem::path(RK_TEST_GOLDEN).parent_path() / "fuzz/corpus" / name;
  const std::string_view text = text_of(bytes);
  if (std::getenv("RK_RECORD_SEEDS") != nullptr) std::ofstream(path, std::ios::binary) << text;
  EXPECT_TRUE(file_text(path) == text) << name << ": see the top of this file";
}

TEST(FuzzSeeds, OfCheckpointsAreAnswersToWhatIsAsked) {
  const std::vector<float> values = {1, 2, 3, 4};
  const std::vector<std::int64_t> labels = {0, 1};
  ModelDescription model;
  model.arch = "resnet20";
  model.dim = 2;
  model.resize = model.crop = 32;
  RunState run;
  run.step = 7;
  run.settings = "{}";
  run.history = {"{}", "{}"};
  run.classes = {"a"};
  run.loss_scale = {.updates = 6, .scale = 1024, .good_steps = 3};
  CheckpointWriter weights(model), whole(model, run);
  for (CheckpointWriter* writer : {&weights, &whole}) {
    writer->weight(kTensorsToFuzz[0], {2, 2}, values.data());
    writer->counter(kTensorsToFuzz[1], 7);
    writer->weight(kTensorsToFuzz[2], {2}, values.data());
  }
  weights.weight("fc.weight", {2, 2}, values.data());
  whole.loss_parameter(kTensorsToFuzz[3], {2, 2}, values.data());
  whole.optimizer_state("exp_avg", kTensorsToFuzz[0], {2, 2}, values.data());
  whole.memory({2, 1, values, labels, labels});
  const auto look = [](Hdf5Reader file) {
    look_at_checkpoint(Checkpoint(std::move(file), "the seal's"));
  };
  expect_seed("checkpoint_fuzz/answers_weights", recorded(weights.finish(), true, look));
  expect_seed("checkpoint_fuzz/answers_run", recorded(whole.finish(), true, look));
}

TEST(FuzzSeeds, OfEmbeddingsAreAnswersToWhatIsAsked) {
  const TemporaryFolder folder;
  const std::string path = folder.in("e.h5");
  EmbeddingSet set;
  set.dim = 2;
  set.embeddings = {1, 0, 0, 1, 1, 0};
  set.labels = {0, 1, 0};
  for (const char* seed : {"embeddings", "embeddings_all_sets"}) {
    write_embeddings(path, set);
    const std::string text = file_text(path);
    const auto bytes = bytes_of(text);
    expect_seed(std::string("hdf5_answers_fuzz/") + seed,
                recorded({bytes.begin(), bytes.end()}, false, look_at_embeddings));
    set.cameras = set.categories = {4, 5, 6};
    set.paths = {"a", "b", "c"};
    set.classes = {"one", "two"};
    set.network = "n";
  }
}

}  // namespace
}  // namespace rk
