// Searching an index by pictures, as users do it.
#include "data/images/decode.h"
#include "data/images/encode_png.h"
#include "data/images/exif.h"
#include "engine/base/text_of.h"
#include "retrieval/files/embeddings_file.h"
#include "retrieval/report/thumbnails.h"
#include "tests/data/rotated_png.h"
#include "tests/support/page.h"
#include "tests/support/read_image.h"
#include "tests/support/words.h"
#include "tests/tools/train/train_program.h"

#include <algorithm>
#include <filesystem>

namespace rk {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class SearchRun : public TrainProgram {
 protected:
  void SetUp() override {
    ASSERT_EQ(run(on_pictures("run", {"--epochs", "1"}, 1)).code, 0);
    folder_.classes("set/c", 3, 4);
    ASSERT_EQ(run({RK_BIN "/eval", "--checkpoint", in("run/last.h5"), "--data",
                   "folder:" + in("set"), "--save-embeddings", in("index.h5"), "-q"})
                  .code,
              0);
  }
  Finished search(const Words& more) const {
    const Words words = joined({RK_BIN "/eval", "--checkpoint", in("run/last.h5"), "--report",
                                in("search.html"), "--json", in("out.json"), "-q"},
                               more);
    return run(words);
  }
  PageElement page() const { return read_page(file_text(in("search.html"))); }
  // Of all pictures on the page, each query's first.
  std::vector<std::string> sources() const {
    std::vector<std::string> out;
    const PageElement root = page();
    for (const PageElement* image : find_all(root, "img")) out.push_back(image->attribute("src"));
    return out;
  }
  // Expects exit code 3 and one line that holds `part`.
  void expect_refused(const Words& more, const std::string& part) const {
    fs::remove(in("sheet.png"));
    fs::remove(in("out.json"));
    const Finished end = search(more);
    EXPECT_EQ(end.code, 3) << end.err;
    EXPECT_TRUE(holds(end.err, part));
    EXPECT_EQ(std::count(end.err.begin(), end.err.end(), '\n'), 1) << end.err;
    EXPECT_FALSE(fs::exists(in("sheet.png")));
    EXPECT_FALSE(fs::exists(in("out.json")));
  }
};

TEST_F(SearchRun, APictureOfTheIndexFindsItselfFirst) {
  const std::string photo = in("set/c1/2.png");
  const Finished end = search({"--index", in("index.h5"), "--query", photo, "--topk", "12"});
  ASSERT_EQ(end.code, 0) << end.err;
  const json result = json::parse(file_text(in("out.json")));
  const json& found = result["queries"][0]["results"];
  ASSERT_EQ(found.size(), 12U);
  EXPECT_EQ(found[0]["path"], photo);
  EXPECT_EQ(found[0]["class"], "c1");
  // The score of a row with itself is its squared length, 1 but for rounding.
  EXPECT_NEAR(found[0]["score"].get<double>(), 1, 1e-5);
  for (std::size_t i = 1; i < found.size(); ++i) {
    EXPECT_GE(found[i - 1]["score"].get<double>(), found[i]["score"].get<double>());
  }
  EXPECT_TRUE(holds(end.out, photo + "\n     1  1.0000  c1  " + photo + "\n     2  "));

  const PageElement root = page();
  const std::vector<const PageElement*> items = find_all(root, "li", "item");
  ASSERT_EQ(items.size(), 13U) << "the query and its results";
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::string path = found[i]["path"];
    EXPECT_TRUE(
        holds(items[i + 1]->text,
              fmt::format("{} {}{}{:.4f}", i + 1, found[i]["class"].get<std::string>(),
                          fs::path(path).filename().string(), found[i]["score"].get<double>())));
    EXPECT_EQ(find_all(*items[i + 1], "span", "clip")[0]->attribute("title"), path);
  }
  // Query and first result are the same picture.
  ASSERT_EQ(sources().size(), 13U);
  EXPECT_EQ(sources()[0], thumbnail_uri(read_image(photo)));
  EXPECT_EQ(sources()[0], sources()[1]);
  for (std::size_t i = 1; i < 13; ++i) {
    EXPECT_EQ(sources()[i], thumbnail_uri(read_image(found[i - 1]["path"].get<std::string>())));
  }
}

TEST_F(SearchRun, WithoutAReportNothingIsWritten) {
  const auto files = [&] {
    return std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator());
  };
  const auto before = files();
  const Words words = {RK_BIN "/eval", "--checkpoint", in("run/last.h5"),  "--index",
                       in("index.h5"), "--query",      in("set/c1/2.png"), "-q"};
  EXPECT_EQ(run_to_end(words, folder_.path()).code, 0);
  EXPECT_EQ(files(), before);
}

TEST_F(SearchRun, AFolderIsAllOfItsPictures) {
  folder_.write("set/c0/phone.heic", "x");
  const Words words = {"--index", in("index.h5"), "--query", in("set/c0"), in("set/c2/0.png")};
  ASSERT_EQ(search(words).code, 0);
  const Finished end = run(joined(
      {RK_BIN "/eval", "--checkpoint", in("run/last.h5"), "--report", in("search.html")}, words));
  fs::remove(in("set/c0/phone.heic"));
  EXPECT_TRUE(holds(end.err, "--query: left out files that are no images it reads: 1 .heic"));
  const json queries = json::parse(file_text(in("out.json")))["queries"];
  ASSERT_EQ(queries.size(), 5U);
  for (const json& each : queries) EXPECT_EQ(each["results"][0]["path"], each["query"]);
  const PageElement root = page();
  const std::vector<const PageElement*> cards = find_all(root, "article");
  ASSERT_EQ(cards.size(), 5U);
  for (std::size_t q = 0; q < 5; ++q) {
    const std::string query = queries[q]["query"];
    EXPECT_EQ(find_all(*cards[q], "h3")[0]->text, query);
    // The page finds it by its name and by what was found for it.
    EXPECT_TRUE(cards[q]->attribute("data-find").starts_with(query + " c0 "));
  }
  EXPECT_TRUE(holds(root.text, "5 pictures looked up in " + in("index.h5") + ": 12 rows of 3"));
  EXPECT_TRUE(holds(root.text, "Note: --query: left out files that are no images"));
  EXPECT_TRUE(holds(root.text, "holds 5 of the 5 pictures of --query, which find themselves"));
}

TEST_F(SearchRun, WhatASearchHasNoUseForIsTold) {
  const Finished end =
      run({RK_BIN "/eval", "--checkpoint", in("run/last.h5"), "--index", in("index.h5"), "--query",
           in("set/c1/2.png"), "--split", "train", "--nmi", "--per-class", "--per-query",
           "--curves", "--recall-at", "3", "--confidence", "0.9", "--protocol", "inshop"});
  EXPECT_EQ(end.code, 0) << end.err;
  for (const char* flag : {"--split", "--nmi", "--per-class", "--per-query", "--curves",
                           "--recall-at", "--confidence", "--protocol"}) {
    EXPECT_TRUE(holds(end.err, std::string(flag) + ": has no effect with --index"));
  }
  EXPECT_FALSE(holds(end.err, "--query: has no effect"));
  EXPECT_TRUE(holds(end.err, "holds the picture of --query, which finds itself"));
}

TEST_F(SearchRun, APictureThatTheIndexLacksIsNotSaidToBeThere) {
  fs::copy_file(in("set/c1/2.png"), in("copy.png"));
  const Finished end = run({RK_BIN "/eval", "--checkpoint", in("run/last.h5"), "--index",
                            in("index.h5"), "--query", in("copy.png")});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_FALSE(holds(end.err, "itself")) << end.err;
}

TEST_F(SearchRun, WhatCannotBeSearchedIsOneLine) {
  const std::string photo = in("set/c1/2.png");
  folder_.write("set/broken.png", "\x89PNG\r\n\x1a\n");
  expect_refused({"--index", in("index.h5"), "--query", in("set/broken.png")}, "broken.png: ");
  expect_refused({"--index", in("index.h5"), "--query", in("nothing.png")},
                 "nothing.png: is not there");
  fs::create_directory(in("hollow"));
  folder_.picture("shelves/inner/0.png", 1);
  expect_refused({"--index", in("index.h5"), "--query", in("hollow")}, "holds no pictures; give");
  expect_refused({"--index", in("index.h5"), "--query", in("shelves")},
                 "shelves: holds no pictures, and folders inside it are not searched; give");
  folder_.write("hollow/phone.heic", "x");
  expect_refused({"--index", in("index.h5"), "--query", in("hollow")},
                 "hollow: holds no pictures it reads (1 .heic); give");
  EmbeddingSet index = read_embeddings(in("index.h5"));
  index.network.clear();
  write_embeddings(in("nobodys.h5"), index);
  expect_refused({"--index", in("nobodys.h5"), "--query", photo},
                 "does not say which network embedded it; write it by `eval --checkpoint ");
  index.network = std::string(64, 'a');
  write_embeddings(in("others.h5"), index);
  expect_refused({"--index", in("others.h5"), "--query", photo},
                 "embedded by another network (aaaaaaaaaaaa) than ");
  folder_.write("index.npz", "PK\3\4 a zip file");
  expect_refused({"--index", in("index.npz"), "--query", photo},
                 "index.npz: is no index; --index takes what `eval --save-embeddings` wrote");
  expect_refused({"--index", in("run/last.h5"), "--query", photo},
                 "is a network's weights, not embeddings");
  const Finished rows =
      run({RK_BIN "/eval", "--checkpoint", in("index.h5"), "--data", "folder:" + in("shelves")});
  EXPECT_EQ(rows.code, 3);
  EXPECT_TRUE(holds(rows.err, "index.h5: is embeddings, not weights; give the checkpoint "));
  // The query picture must never be overwritten by the page.
  const Finished end = run({RK_BIN "/eval", "--checkpoint", in("run/last.h5"), "--index",
                            in("index.h5"), "--query", photo, "--report", photo});
  EXPECT_EQ(end.code, 2);
  EXPECT_TRUE(holds(end.err, "is the file that is read"));
}

// It holds 50 queries and 50 results of each.
TEST_F(SearchRun, APageSaysWhatItLeavesOut) {
  const EmbeddingSet index = read_embeddings(in("index.h5"));
  const auto write_index = [&](std::size_t rows) {
    EmbeddingSet more = index;
    while (more.labels.size() < rows) {
      more.embeddings.insert(more.embeddings.end(), index.embeddings.begin(),
                             index.embeddings.begin() + index.dim);
      more.labels.push_back(index.labels[0]);
      more.paths.push_back(index.paths[0]);
    }
    write_embeddings(in("more.h5"), more);
  };
  const auto expect_shown = [&](const Words& words, std::size_t items, const std::string& told) {
    const Finished end = search(words);
    ASSERT_EQ(end.code, 0) << end.err;
    const PageElement root = page();
    EXPECT_EQ(find_all(root, "li", "item").size(), items);
    EXPECT_EQ(holds(root.text, "Shown are"), !told.empty());
    EXPECT_TRUE(holds(root.text, told));
  };
  const auto results = [&](const std::string& topk) {
    return Words{"--index", in("more.h5"), "--query", in("set/c1/2.png"), "--topk", topk};
  };
  write_index(60);
  expect_shown(results("50"), 51, "");
  expect_shown(results("51"), 51, "Shown are at most 50 results of a query.");
  const Words queries = {"--index", in("index.h5"), "--query", in("many"), "--topk", "1"};
  for (std::uint64_t i = 0; i < 50; ++i) folder_.picture(fmt::format("many/{}.png", i), i);
  expect_shown(queries, 100, "");
  folder_.picture("many/50.png", 50);
  expect_shown(queries, 100, "Shown are the first 50 of 51 queries.");
}

// The network was trained on pictures as they lie.
TEST_F(SearchRun, QueriesAreTurnedAsTheIndexWas) {
  folder_.write("lying.png", rotated_png(file_text(in("set/c1/2.png"))));
  const auto nearest = [&](const std::string& index) {
    const Finished end =
        run({RK_BIN "/eval", "--checkpoint", in("run/last.h5"), "--index", in(index), "--query",
             in("lying.png"), "--json", in("nearest.json"), "--force"});
    EXPECT_EQ(end.code, 0) << end.err;
    return json::parse(file_text(in("nearest.json")))["queries"][0]["results"][0];
  };
  folder_.write("lying/c0/0.png", file_text(in("lying.png")));
  folder_.write("lying/c1/0.png", file_text(in("set/c0/0.png")));
  for (const char* exif : {"turn", "ignore"}) {
    ASSERT_EQ(run({RK_BIN "/eval", "--checkpoint", in("run/last.h5"), "--data",
                   "folder:" + in("lying") + ",exif=" + exif, "--save-embeddings",
                   in(fmt::format("{}.h5", exif)), "-q"})
                  .code,
              0);
    EXPECT_EQ(read_embeddings(in(fmt::format("{}.h5", exif))).exif, exif);
    const json first = nearest(fmt::format("{}.h5", exif));
    EXPECT_EQ(first["class"], "c0");
    EXPECT_GT(first["score"], 0.99999) << exif;
  }
}

// Of two folders with pictures of the same names, those that were embedded.
TEST_F(SearchRun, PathsLeadToWhatWasEmbeddedFromAnywhere) {
  for (const char* shop : {"red", "blue"}) {
    for (int i = 0; i < 3; ++i) {
      folder_.picture(fmt::format("{}/photos/c{}/0.png", shop, i),
                      static_cast<std::uint64_t>(shop[0] + i));
    }
  }
  const auto eval_in = [&](const std::string& folder, Words words) {
    words.insert(words.begin(), {"/usr/bin/env", "-C", in(folder), RK_BIN "/eval", "--checkpoint",
                                 in("run/last.h5"), "--force"});
    const Finished end = run(words);
    EXPECT_EQ(end.code, 0) << end.err;
    return end;
  };
  eval_in("red", {"--data", "photos", "--save-embeddings", "index.h5"});
  EXPECT_EQ(read_embeddings(in("red/index.h5")).paths[0], "photos/c0/0.png");
  const Words search = {"--index", in("red/index.h5"), "--query", in("red/photos/c1/0.png"),
                        "--json",  in("found.json")};
  const auto first = [&] {
    return json::parse(file_text(in("found.json")))["queries"][0]["results"][0]["path"];
  };
  EXPECT_TRUE(holds(eval_in("blue", search).err, "holds the picture of --query"));
  EXPECT_EQ(first(), in("red/photos/c1/0.png"));
  eval_in("red", search);
  EXPECT_EQ(first(), "photos/c1/0.png");
  // Moved as a whole.
  fs::rename(in("red"), in("green"));
  eval_in("blue", {"--index", in("green/index.h5"), "--query", in("green/photos/c1/0.png"),
                   "--json", in("found.json")});
  EXPECT_EQ(first(), in("green/photos/c1/0.png"));
}

// However the network of the queries sees them.
TEST_F(SearchRun, ResultsAreShownAsTheyWereEmbedded) {
  Image white(40, 10);
  std::fill_n(white.data(), white.bytes(), std::uint8_t{255});
  folder_.write("lies.png", rotated_png(text_of(encode_png(white))));
  EmbeddingSet one = read_embeddings(in("index.h5"));
  one.embeddings.resize(static_cast<std::size_t>(one.dim));
  one.labels.resize(1);
  one.paths = {in("lies.png")};
  for (const char* exif : {"turn", "ignore"}) {
    one.exif = exif;
    write_embeddings(in("one.h5"), one);
    ASSERT_EQ(search({"--index", in("one.h5"), "--query", in("set/c1/2.png")}).code, 0);
    const Image turned = read_photo(in("lies.png"), one.exif == "turn").image;
    EXPECT_EQ(turned.height() > turned.width(), one.exif == "turn");
    EXPECT_EQ(sources()[1], thumbnail_uri(turned)) << exif;
  }
}

TEST_F(SearchRun, AnIndexWithoutPathsHasNumbersForNamesAndNoPictures) {
  EmbeddingSet index = read_embeddings(in("index.h5"));
  index.paths.clear();
  write_embeddings(in("nameless.h5"), index);
  const Finished end = search({"--index", in("nameless.h5"), "--query", in("set/c1/2.png")});
  EXPECT_EQ(end.code, 0) << end.err;
  const json result = json::parse(file_text(in("out.json")));
  EXPECT_EQ(result["queries"][0]["results"][0]["path"], "row 6");  // four pictures a class
  EXPECT_EQ(result["queries"][0]["results"][0]["class"], "c1");
  EXPECT_TRUE(sources().empty());
  EXPECT_TRUE(holds(page().text, "There are no pictures to show: " + in("nameless.h5") +
                                     " does not say where they are."));
  EXPECT_TRUE(holds(find_all(page(), "li", "item")[1]->text, "1 c1row 6"));
}

TEST_F(SearchRun, PicturesThatAreLeftOutAreSaid) {
  folder_.write("some/broken.png", "\x89PNG\r\n\x1a\n");
  folder_.picture("some/whole.png", 3);
  const Words words = {"--index", in("index.h5"), "--query", in("some"), "--skip-bad"};
  ASSERT_EQ(search(words).code, 0);
  EXPECT_TRUE(holds(page().text, "Note: 1 picture of --query cannot be read: left out."));
  EXPECT_EQ(find_all(page(), "article").size(), 1U);
}

// A job may outlive the folder that it was started in.
TEST_F(SearchRun, FromAFolderThatIsGone) {
  fs::create_directory(in("gone"));
  const Finished end =
      run({"/bin/sh", "-c",
           "cd '" + in("gone") + "' && rmdir ../gone && exec " RK_BIN "/eval --checkpoint '" +
               in("run/last.h5") + "' --data '" + in("set") + "' --save-embeddings '" +
               in("new.h5") + "'"});
  ASSERT_EQ(end.code, 0) << end.err;
  EXPECT_EQ(read_embeddings(in("new.h5")).paths, read_embeddings(in("index.h5")).paths);
}

TEST_F(SearchRun, WhatIsGoneIsSaid) {
  fs::rename(in("set/c2"), in("elsewhere"));
  ASSERT_EQ(search({"--index", in("index.h5"), "--query", in("set/c1/2.png"), in("set/c0/1.png"),
                    "--topk", "12"})
                .code,
            0);
  const PageElement root = page();
  std::int64_t gone = 0;
  for (const PageElement* item : find_all(root, "li", "item")) {
    if (holds(item->text, "picture cannot be read")) ++gone;
  }
  EXPECT_EQ(gone, 8);  // four of each query
  EXPECT_EQ(sources().size(), 18U);
  EXPECT_TRUE(holds(root.text, "of the pictures that were found, 4 are no longer there"));
}

}  // namespace
}  // namespace rk
