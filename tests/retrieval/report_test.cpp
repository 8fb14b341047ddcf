// The report must be complete, true, and harmless whatever files and classes are called.
#include "retrieval/report/report.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/device/context.h"
#include "retrieval/report/confusions.h"
#include "retrieval/report/html.h"
#include "retrieval/report/query_choice.h"
#include "retrieval/report/thumbnails.h"
#include "retrieval/statistics/per_class.h"
#include "tests/support/messages.h"
#include "tests/support/page.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

namespace rk {
namespace {

const std::vector<std::string> kHostile = {"<script>alert(1)</script>",
                                           "\"><img src=x onerror=alert(1)>",
                                           "' onload='alert(1)",
                                           "]]> --> <!--",
                                           "&lt;b&gt; &amp; &#60;",
                                           "javascript:alert(1)",
                                           "</style></title></article>",
                                           "https://example.org/a.png",
                                           "line\nand\ttab",
                                           "turned \xE2\x80\xAEgnp.exe"};

// Random rows in `classes` clusters, with class names and paths.
struct Made {
  EmbeddingSet set;
  Context context{1};
  Made(std::int64_t rows, std::int64_t classes, double noise, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    set.dim = 8;
    std::vector<float> centres(static_cast<std::size_t>(classes * set.dim));
    for (float& value : centres) value = normal(random);
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t label = row % classes;
      std::vector<float> one;
      float square = 0;
      for (std::int64_t d = 0; d < set.dim; ++d) {
        one.push_back(centres[at(label * set.dim + d)] +
                      static_cast<float>(noise) * normal(random));
        square += one.back() * one.back();
      }
      for (const float value : one) set.embeddings.push_back(value / std::sqrt(square));
      set.labels.push_back(label);
      set.paths.push_back(fmt::format("pics/c{}/{}.jpg", label, row));
    }
    for (std::int64_t c = 0; c < classes; ++c) set.classes.push_back(fmt::format("class {}", c));
  }
  ReportedRun run(const std::string& name) const {
    EvaluateOptions how;
    how.per_query = true;
    const Metrics metrics = *evaluate(context, set.view(), nullptr, how);
    return {.name = name,
            .metrics = metrics,
            .intervals = bootstrap(context, metrics.per_query, metrics.recall_at, {}),
            .neighbours = *nearest(context, set.view(), nullptr, {}),
            .record = std::nullopt,
            .facts = {{"SHA-256 of the network", "abc123"}}};
  }
  Report report() const {
    Report report;
    report.title = "Retrieval by x";
    report.data = "e.h5";
    report.protocol = "against themselves";
    report.queries = &set;
    report.no_pictures = "e.h5 does not say where they are";
    report.facts = {{"Command", "eval --embeddings 'e.h5'"}};
    return report;
  }
};

Image picture(std::int64_t row) {
  Image image(130, 100);
  for (int y = 0; y < 100; ++y) {
    for (int x = 0; x < 130; ++x) {
      for (int c = 0; c < 3; ++c) {
        image.pixel(x, y)[c] = static_cast<std::uint8_t>(
            128 + 100 * std::sin((x + 7.0 * static_cast<double>(row)) / (5 + c)) *
                      std::cos(y / (6.0 + c)));
      }
    }
  }
  return image;
}

LearningRecord record() {
  LearningRecord made{.epochs = {}, .evaluated = 2, .loss = "fastap", .held_out = "split val"};
  for (int epoch = 0; epoch < 4; ++epoch) {
    RecordedEpoch next;
    next.epoch = epoch;
    if (epoch > 0) next.loss = 1.0 / epoch;
    next.held_out = {.recall_at_1 = 0.1 * epoch,
                     .map_at_r = 0.05 * epoch,
                     .jsd = 0.2 * epoch,
                     .positives = {0, 1, 5},
                     .negatives = {7, 2, 0}};
    next.training = {.recall_at_1 = 0.15 * epoch,
                     .map_at_r = 0.07 * epoch,
                     .jsd = 0.25 * epoch,
                     .positives = {0, 0, 6},
                     .negatives = {8, 1, 0}};
    made.epochs.push_back(next);
  }
  return made;
}

// The page must fetch nothing and run nothing but its own script.
void expect_harmless(const std::string& page) {
  const PageElement root = read_page(page);
  const auto scripts = find_all(root, "script");
  ASSERT_EQ(scripts.size(), 1U);
  // What is typed and what is looked through are compared in lower case and without accents.
  EXPECT_TRUE(holds(scripts[0]->text, ".toLowerCase().trim()"));
  EXPECT_TRUE(holds(scripts[0]->text, "plain(find.value)"));
  EXPECT_TRUE(holds(scripts[0]->text, "plain(card.dataset.find)"));
  const auto styles = find_all(root, "style");
  ASSERT_EQ(styles.size(), 1U);
  std::string policy;
  for (const PageElement* meta : find_all(root, "meta")) {
    if (meta->attribute("http-equiv") == "Content-Security-Policy") {
      policy = meta->attribute("content");
    }
  }
  EXPECT_TRUE(holds(policy, "default-src 'none'; img-src data:; style-src 'sha256-"));
  EXPECT_TRUE(holds(policy, "style-src " + source_hash(styles[0]->text) + ";"));
  EXPECT_TRUE(holds(policy, "script-src " + source_hash(scripts[0]->text) + ";"));
  EXPECT_FALSE(holds(policy, "unsafe"));
  EXPECT_FALSE(holds(styles[0]->text, "url(") || holds(styles[0]->text, "@import"));
  std::set<std::string> ids;
  for (const PageElement* each : find_all(root, [](const PageElement&) { return true; })) {
    for (const char* name : {"iframe", "object", "embed", "link", "base", "form"}) {
      EXPECT_NE(each->name, name);
    }
    for (const auto& [key, value] : each->attributes) {
      EXPECT_FALSE(key.starts_with("on")) << each->name << " " << key;
      EXPECT_NE(key, "style");
      if (key == "src") {
        EXPECT_TRUE(value.starts_with("data:image/jpeg;base64,"));
      }
      if (key == "href") {
        EXPECT_TRUE(value.starts_with('#'));
      }
      if (key == "id") {
        EXPECT_TRUE(ids.insert(value).second) << value;
      }
    }
  }
  for (const PageElement* link : find_all(root, "a")) {
    EXPECT_TRUE(ids.contains(link->attribute("href").substr(1)));
  }
}

TEST(Report, ShowsNoQueryTwice) {
  const Made made(50, 5, 1.5, 4), other(50, 5, 1.5, 5);
  Report report = made.report();
  for (const auto& [runs, groups] : {std::pair<std::size_t, std::size_t>{1, 2}, {2, 3}}) {
    report.runs.push_back(runs == 1 ? made.run("x") : other.run("y"));
    const PageElement root = read_page(report_page(report));
    std::set<std::string> shown, found;
    for (const PageElement* article : find_all(root, "article")) {
      EXPECT_TRUE(shown.insert(article->attribute("data-find")).second)
          << article->attribute("data-find");
    }
    for (const PageElement* section : find_all(root, "section")) {
      found.insert(section->attribute("data-group"));
    }
    found.erase("");
    EXPECT_EQ(found.size(), groups);
    EXPECT_GT(shown.size(), 30U) << "so many that two groups would share some";
  }
}

TEST(Report, HoldsEveryNumber) {
  const Made made(120, 12, 0.9, 3);
  Report report = made.report();
  report.runs.push_back(made.run("x"));
  report.runs[0].record = record();
  report.picture = [](bool, std::int64_t row) { return picture(row); };
  const std::string page = report_page(report);
  expect_harmless(page);
  const PageElement root = read_page(page);
  const ReportedRun& run = report.runs[0];
  const Metrics& m = run.metrics;
  const auto shown = [&](double value) {
    EXPECT_TRUE(holds(root.text, fmt::format("{:.4f}", value))) << value;
  };
  for (std::size_t i = 0; i < m.recall_at.size(); ++i) {
    EXPECT_TRUE(holds(root.text, fmt::format("R@{}", m.recall_at[i])));
    shown(m.recall[i]);
    shown(run.intervals.recall[i].low);
    shown(run.intervals.recall[i].high);
  }
  for (const double value : {m.map_at_r, m.map, m.r_precision, m.pairs.roc_auc, m.pairs.jsd,
                             m.pairs.pos_mean, m.pairs.neg_mean, m.dists_intra, m.dists_inter}) {
    shown(value);
  }
  for (const Interval& interval :
       {run.intervals.map_at_r, run.intervals.map, run.intervals.r_precision}) {
    shown(interval.low);
    shown(interval.high);
  }
  for (const char* words :
       {"Retrieval by x", "against themselves", "95 % interval", "abc123", "eval --embeddings",
        "Training classes", "Held out while training (split val)", "Evaluated here"}) {
    EXPECT_TRUE(holds(root.text, words)) << words;
  }
  // Three charts of similarities, three curves, four charts of the training.
  EXPECT_EQ(find_all(root, "figure").size(), 10U);
  // Those four stand in pairs; in rows of three one would be alone.
  EXPECT_EQ(find_all(root, "div", "charts").size(), 3U);
  const auto pairs = find_all(root, "div", "pairs");
  ASSERT_EQ(pairs.size(), 1U);
  EXPECT_EQ(find_all(*pairs[0], "figure").size(), 4U);
  // All charts have the same five parts, which the rows of a grid align.
  for (const PageElement* figure : find_all(root, "figure")) {
    EXPECT_EQ(figure->children.size(), 5U);
  }
  // The 24 hardest queries and 24 random ones, each with its neighbours and all their pictures.
  const auto cards = find_all(root, "article");
  ASSERT_EQ(cards.size(), 48U);
  EXPECT_TRUE(holds(root.text, fmt::format("48 of {} queries, each with its first results",
                                           made.set.labels.size())));
  const std::vector<std::int64_t> hardest = hardest_queries(m.per_query, 24);
  for (std::size_t i = 0; i < 24; ++i) {
    const std::int64_t query = hardest[i];
    const auto results = find_all(*cards[i], "li");
    ASSERT_EQ(results.size(), 9U);
    EXPECT_TRUE(holds(cards[i]->text, made.set.paths[at(query)]));
    for (std::size_t k = 1; k < results.size(); ++k) {
      const Neighbour found = run.neighbours.of(query)[k - 1];
      const bool right = made.set.labels[at(found.row)] == made.set.labels[at(query)];
      EXPECT_TRUE(results[k]->has_class(right ? "right" : "wrong"));
      EXPECT_TRUE(holds(results[k]->text, right ? "\xE2\x9C\x93" : "\xE2\x9C\x97"));
      EXPECT_TRUE(holds(results[k]->text, fmt::format("{:.3f}", found.score)));
      const auto images = find_all(*results[k], "img");
      ASSERT_EQ(images.size(), 1U);
      EXPECT_TRUE(holds(images[0]->attribute("alt"),
                        fmt::format("result {} of class class {}, {}", k, found.row % 12,
                                    right ? "right" : "wrong")));
    }
  }
  EXPECT_EQ(find_all(root, "h1").size(), 1U);
  EXPECT_EQ(root.attribute("lang"), "en");
}

TEST(Report, EscapesWhatFilesAndClassesAreCalled) {
  Made made(60, 10, 1.5, 5);
  for (std::size_t i = 0; i < made.set.paths.size(); ++i) {
    made.set.paths[i] = fmt::format("{}/{}", kHostile[i % kHostile.size()], i);
  }
  for (std::size_t c = 0; c < made.set.classes.size(); ++c) made.set.classes[c] = kHostile[c];
  made.set.classes[1] += "\xFF\xC0\x80\xED\xA0\x80 and \xF4\x90\x80\x80";
  Report report = made.report();
  report.title = report.data = report.protocol = report.no_pictures = kHostile[0];
  for (const std::string& name : kHostile) report.facts.emplace_back(name, name);
  for (const char* name : {"<script>a</script>", "\"b"}) {
    report.runs.push_back(made.run(name));
    report.runs.back().record = record();
    report.runs.back().record->held_out = kHostile[1];
    for (const std::string& text : kHostile) {
      report.runs.back().settings.emplace_back(text, name + text);
    }
  }
  report.difference =
      bootstrap_difference(made.context, report.runs[0].metrics.per_query,
                           report.runs[1].metrics.per_query, report.runs[0].metrics.recall_at, {});
  for (int runs = 2; runs > 0; --runs) {
    const std::string page = report_page(report);
    expect_harmless(page);
    const PageElement root = read_page(page);
    for (const std::size_t plain : {0U, 2U, 4U, 5U, 6U, 7U}) {
      EXPECT_TRUE(holds(root.text, kHostile[plain])) << kHostile[plain];
    }
    EXPECT_FALSE(holds(page, "\xE2\x80\xAE")) << "the direction of writing is turned";
    EXPECT_FALSE(holds(page, "\xFF"));
    report.runs.erase(report.runs.begin() + 1, report.runs.end());
    report.difference.reset();
  }
}

TEST(Report, SaysInWhichSettingsTwoRunsDiffer) {
  const ReportFacts a = {{"loss", "nsl"}, {"lr", "0.1"}, {"dim", "64"}, {"log", ""}, {"old", "1"}};
  const ReportFacts b = {
      {"dim", "64"}, {"loss", "fastap"}, {"lr", "0.1"}, {"new", "2"}, {"not", ""}};
  std::vector<std::string> told;
  for (const DifferingFact& fact : differing_facts(a, b)) {
    told.push_back(fmt::format("{}: {} or {}", fact.name, fact.first, fact.second));
  }
  EXPECT_EQ(told, (std::vector<std::string>{"loss: nsl or fastap", "old: 1 or ", "new:  or 2"}));
  EXPECT_TRUE(differing_facts(a, a).empty());
  EXPECT_TRUE(differing_facts(a, {}).empty()) << "nothing is known of the other side";
  EXPECT_TRUE(differing_facts({}, b).empty());

  const Made made(40, 8, 0.5, 7);
  Report report = made.report();
  for (const ReportFacts* settings : {&a, &b}) {
    report.runs.push_back(made.run("x"));
    report.runs.back().settings = *settings;
  }
  const std::vector<PerQuery> queries(2, report.runs[0].metrics.per_query);
  report.difference = bootstrap_difference(made.context, queries[0], queries[1],
                                           report.runs[0].metrics.recall_at, {});
  const auto text = [&] { return read_page(report_page(report)).text; };
  EXPECT_TRUE(holds(text(), "Settings that differ"));
  EXPECT_TRUE(holds(text(), "not given"));
  report.runs[1].settings = a;
  EXPECT_TRUE(holds(text(), "Both runs were trained with the same settings."));
  report.runs[1].settings.clear();  // of one run nothing is known
  EXPECT_FALSE(holds(text(), "Settings that differ"));
  EXPECT_TRUE(holds(text(), "0.1")) << "those of the other are still told";
}

TEST(Report, RowsOfOtherLengthsAreSaidToHaveNoHistogram) {
  const Made made(40, 8, 0.5, 7);
  Report report = made.report();
  report.runs.push_back(made.run("x"));
  EXPECT_TRUE(holds(report_page(report), "Evaluated here"));
  EXPECT_FALSE(holds(report_page(report), "--normalize"));
  report.scores_leave_range = true;
  const std::string page = report_page(report);
  expect_harmless(page);
  EXPECT_FALSE(holds(page, "Evaluated here"));
  EXPECT_TRUE(holds(read_page(page).text, "makes scores cosine similarities"));
  EXPECT_TRUE(holds(page, "says little: scores leave [-1, 1]"));
}

TEST(Report, WithoutPicturesItNamesTheResults) {
  const Made made(40, 8, 0.5, 7);
  Report report = made.report();
  report.runs.push_back(made.run("x"));
  const std::string page = report_page(report);
  expect_harmless(page);
  const PageElement root = read_page(page);
  EXPECT_TRUE(find_all(root, "img").empty());
  EXPECT_TRUE(holds(root.text, "There are no pictures to show: e.h5 does not say where they are."));
  EXPECT_FALSE(holds(root.text, "Training")) << "embeddings from a file say nothing of it";
  report.no_training = "no <record> lies there";
  EXPECT_TRUE(holds(read_page(report_page(report)).text,
                    "Nothing is known of the training: no <record> lies there."));
  EXPECT_TRUE(holds(find_all(root, "article")[0]->text, ".jpg"));

  // Nor may rows without names or paths break the page, or a picture that no longer exists.
  EmbeddingSet bare = made.set;
  bare.classes.clear();
  bare.paths.clear();
  report.queries = &bare;
  const PageElement unnamed = read_page(report_page(report));
  EXPECT_TRUE(holds(unnamed.text, "label 3") && holds(unnamed.text, "row 11"));
  report.picture = [](bool, std::int64_t row) -> Image {
    if (row % 2 == 0) throw InputError("gone");
    return picture(row);
  };
  const std::string some = report_page(report);
  expect_harmless(some);
  EXPECT_TRUE(holds(some, "picture cannot be read") && holds(some, "<img "));
}

// Queries show their own pictures, results those of the gallery; and every query what was found for
// it.
TEST(Report, ResultsAreThoseOfTheGallery) {
  const Made asked(30, 6, 0.9, 13), searched(45, 6, 0.9, 14);
  const EmbeddingView queries = asked.set.view(), gallery = searched.set.view();
  EvaluateOptions how;
  how.per_query = true;
  const Metrics metrics = *evaluate(asked.context, queries, &gallery, how);
  Report report = asked.report();
  report.gallery = &searched.set;
  report.runs.push_back(
      {.name = "x",
       .metrics = metrics,
       .intervals = bootstrap(asked.context, metrics.per_query, metrics.recall_at, {}),
       .neighbours = *nearest(asked.context, queries, &gallery, {}),
       .record = std::nullopt,
       .facts = {}});
  report.picture = [](bool of_gallery, std::int64_t row) {
    return picture(of_gallery ? 100 + row : row);
  };
  const PageElement root = read_page(report_page(report));
  const auto cards = find_all(root, "article");
  const std::vector<std::int64_t> hardest = hardest_queries(metrics.per_query, 24);
  ASSERT_GE(cards.size(), hardest.size());
  for (std::size_t i = 0; i < hardest.size(); ++i) {
    const std::int64_t query = hardest[i];
    const auto q = static_cast<std::size_t>(query);
    const PerQuery& each = metrics.per_query;
    const std::string said = fmt::format(
        "{} to find; the first is result {} of {}; average precision {:.4f}", each.num_relevant[q],
        each.first_hit_rank[q], each.num_candidates[q], each.ap[q]);
    EXPECT_TRUE(holds(cards[i]->text, said)) << said;
    std::vector<std::string> expected = {thumbnail_uri(picture(query))};
    for (const Neighbour& found : report.runs[0].neighbours.of(query).first(8)) {
      expected.push_back(thumbnail_uri(picture(100 + found.row)));
    }
    std::vector<std::string> shown;
    for (const PageElement* image : find_all(*cards[i], "img")) {
      shown.push_back(image->attribute("src"));
    }
    EXPECT_TRUE(shown == expected) << "query " << query;
  }
}

// Sets with nothing to find, one class or equal rows must still make a page.
TEST(Report, OddSetsMakePagesToo) {
  Made lone(6, 6, 0, 1), one(6, 1, 0.1, 1), equal(6, 2, 0, 1);
  std::fill(equal.set.embeddings.begin(), equal.set.embeddings.end(), 0.5F);
  for (Made* made : {&lone, &one, &equal}) {
    Report report = made->report();
    report.runs.push_back(made->run("x"));
    expect_harmless(report_page(report));
    report.runs.push_back(made->run("y"));
    report.difference = bootstrap_difference(made->context, report.runs[0].metrics.per_query,
                                             report.runs[1].metrics.per_query,
                                             report.runs[0].metrics.recall_at, {});
    expect_harmless(report_page(report));
  }
}

TEST(Report, TwoRunsStandSideBySide) {
  const Made good(150, 15, 0.5, 9), bad(150, 15, 1.4, 9);
  Report report = bad.report();
  report.runs.push_back(bad.run("runs/bad"));
  report.runs.push_back(good.run("runs/good"));
  report.runs[0].record = report.runs[1].record = record();
  report.difference =
      bootstrap_difference(bad.context, report.runs[0].metrics.per_query,
                           report.runs[1].metrics.per_query, report.runs[0].metrics.recall_at, {});
  report.picture = [](bool, std::int64_t row) { return picture(row); };
  const std::string page = report_page(report);
  expect_harmless(page);
  const PageElement root = read_page(page);
  const Metrics &a = report.runs[0].metrics, &b = report.runs[1].metrics;
  for (const PageElement* row : find_all(root, "tr")) {
    if (row->children[0].text != "MAP@R") continue;
    EXPECT_TRUE(holds(row->text, fmt::format("{:.4f}", a.map_at_r)));
    EXPECT_TRUE(holds(row->text, fmt::format("{:.4f}", b.map_at_r)));
    EXPECT_TRUE(holds(row->text, fmt::format("{:+.4f}", b.map_at_r - a.map_at_r)));
    EXPECT_TRUE(holds(row->text, fmt::format("{:+.4f} to {:+.4f}", report.difference->map_at_r.low,
                                             report.difference->map_at_r.high)));
    EXPECT_TRUE(holds(row->text, "runs/good is higher"));
  }
  std::swap(report.runs[0], report.runs[1]);
  report.difference = bootstrap_difference(bad.context, b.per_query, b.per_query, b.recall_at, {});
  EXPECT_TRUE(holds(report_page(report), "not told apart"));
  for (const char* words : {"Better in runs/good", "Drawn at random"}) {
    EXPECT_TRUE(holds(root.text, words)) << words;
  }
  EXPECT_LT(page.size(), 3'000'000U);
}

TEST(Report, StaysSmallWithTenThousandQueries) {
  const Made made(10000, 1000, 0.7, 11);
  Report report = made.report();
  report.runs.push_back(made.run("x"));
  report.picture = [](bool, std::int64_t row) { return picture(row); };
  const std::string page = report_page(report);
  EXPECT_LT(page.size(), 3'000'000U);
  expect_harmless(page);
}

TEST(QueryChoice, IsThatOfItsDefinition) {
  std::mt19937 random(static_cast<unsigned>(random_seed()));
  for (int round = 0; round < 300; ++round) {
    const std::size_t n = std::uniform_int_distribution<std::size_t>(0, 30)(random);
    PerQuery a, b;
    for (std::size_t q = 0; q < n; ++q) {
      const int relevant = std::uniform_int_distribution(0, 3)(random);
      a.num_relevant.push_back(relevant);
      const auto value = [&] {  // few values, so that some are equal
        return relevant == 0 ? std::nan("") : std::uniform_int_distribution(1, 5)(random) / 5.0;
      };
      a.ap.push_back(value());
      b.ap.push_back(value());
      a.first_hit_rank.push_back(relevant == 0 ? 0 : std::uniform_int_distribution(1, 4)(random));
    }
    b.num_relevant = a.num_relevant;
    b.first_hit_rank = a.first_hit_rank;
    const std::size_t count = std::uniform_int_distribution<std::size_t>(0, 12)(random);
    // The plain way: take the hardest of those that are left, again and again.
    std::vector<std::int64_t> expected;
    std::set<std::size_t> left;
    for (std::size_t q = 0; q < n; ++q) {
      if (a.num_relevant[q] > 0) left.insert(q);
    }
    const std::set<std::size_t> valid = left;
    while (expected.size() < count && !left.empty()) {
      std::size_t best = *left.begin();
      for (const std::size_t q : left) {
        const bool harder = a.ap[q] < a.ap[best] ||
                            (a.ap[q] == a.ap[best] && a.first_hit_rank[q] > a.first_hit_rank[best]);
        if (harder) best = q;
      }
      expected.push_back(static_cast<std::int64_t>(best));
      left.erase(best);
    }
    EXPECT_EQ(hardest_queries(a, count), expected);
    const auto drawn = random_queries(a, count, 4, {});
    EXPECT_EQ(drawn, random_queries(a, count, 4, {}));
    EXPECT_EQ(drawn.size(), std::min(count, valid.size()));
    const auto others = random_queries(a, valid.size(), 4, drawn);
    EXPECT_EQ(others.size(), valid.size() - drawn.size());
    for (const std::int64_t q : others) EXPECT_TRUE(std::ranges::find(drawn, q) == drawn.end());
    EXPECT_EQ(std::set<std::int64_t>(drawn.begin(), drawn.end()).size(), drawn.size());
    for (const std::int64_t q : drawn) EXPECT_TRUE(valid.contains(static_cast<std::size_t>(q)));
    const auto gained = most_gained(a, b, count);
    for (std::size_t i = 0; i < gained.size(); ++i) {
      const auto q = static_cast<std::size_t>(gained[i]);
      EXPECT_GT(b.ap[q], a.ap[q]);
      if (i == 0) continue;
      const auto before = static_cast<std::size_t>(gained[i - 1]);
      EXPECT_GE(b.ap[before] - a.ap[before], b.ap[q] - a.ap[q]);
    }
    const auto better =
        std::count_if(valid.begin(), valid.end(), [&](std::size_t q) { return b.ap[q] > a.ap[q]; });
    EXPECT_EQ(gained.size(), std::min(count, static_cast<std::size_t>(better)));
  }
}

// Each of the 12 ordered pairs comes 500 times on average, with a standard deviation of 21.4: one
// is more than six of them off once in 1e8.
TEST(QueryChoice, EveryQueryIsAsLikelyAtEveryPlace) {
  PerQuery queries;
  queries.num_relevant = {1, 1, 0, 1, 1};
  std::map<std::vector<std::int64_t>, int> drawn;
  const std::uint64_t seed = random_seed();
  for (std::uint64_t i = 0; i < 6000; ++i) ++drawn[random_queries(queries, 2, seed + i, {})];
  EXPECT_EQ(drawn.size(), 12U);
  for (const auto& [rows, times] : drawn) {
    EXPECT_NEAR(times, 500, 6 * 21.4) << rows[0] << ' ' << rows[1];
  }
}

TEST(Confusions, AreCountedOverFirstResults) {
  std::mt19937 random(static_cast<unsigned>(random_seed()));
  for (int round = 0; round < 100; ++round) {
    EmbeddingSet set, other;
    const int n = std::uniform_int_distribution(1, 40)(random);
    for (int i = 0; i < n; ++i) {
      set.labels.push_back(std::uniform_int_distribution(0, 4)(random));
      other.labels.push_back(std::uniform_int_distribution(0, 4)(random));
    }
    const EmbeddingSet* gallery = round % 2 == 0 ? &other : nullptr;
    const std::vector<std::int64_t>& candidates = gallery != nullptr ? other.labels : set.labels;
    Neighbours found(n, 2);
    PerQuery per_query;
    std::map<std::int64_t, std::int64_t> valid;
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> expected;
    for (int q = 0; q < n; ++q) {
      found.count(q) = std::uniform_int_distribution(0, 2)(random);
      for (int k = 0; k < found.count(q); ++k) {
        found.room(q)[at(k)] = {0.5F, std::uniform_int_distribution(0, n - 1)(random)};
      }
      // A query whose class no candidate has cannot be answered rightly; nor one without results.
      per_query.num_relevant.push_back(std::uniform_int_distribution(0, 1)(random) *
                                       found.count(q));
      if (per_query.num_relevant.back() == 0) continue;
      const std::int64_t own = set.labels[at(q)];
      ++valid[own];
      const std::int64_t first = candidates[at(found.of(q)[0].row)];
      if (first != own) ++expected[{own, first}];
    }
    const auto all = most_confused(set, gallery, per_query, found, 100);
    ASSERT_EQ(all.size(), expected.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i].times, (expected[{all[i].label, all[i].taken_for}]));
      EXPECT_EQ(all[i].queries, valid[all[i].label]);
      if (i > 0) {
        EXPECT_GE(all[i - 1].times, all[i].times);
      }
    }
    EXPECT_EQ(most_confused(set, gallery, per_query, found, 2).size(),
              std::min<std::size_t>(2, all.size()));
  }
}

TEST(Html, TextIsText) {
  EXPECT_EQ(escaped_to_break("a/b_c-<.png"), "a/<wbr/>b_<wbr/>c-<wbr/>&lt;.<wbr/>png");
  EXPECT_EQ(escaped("<a href=\"x\">&'</a>"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;&lt;/a&gt;");
  EXPECT_EQ(escaped("Gr\xC3\xB6\xC3\x9F"
                    "e \xE5\xB1\xB1 \xF0\x9F\x90\x88"),
            "Gr\xC3\xB6\xC3\x9F"
            "e \xE5\xB1\xB1 \xF0\x9F\x90\x88");
  const std::string gone = "\xEF\xBF\xBD";
  EXPECT_EQ(escaped("a\xFF"
                    "b"),
            "a" + gone + "b");
  EXPECT_EQ(escaped("\xC3"), gone);
  // Of the general punctuation, those that Unicode calls Bidi_Control.
  EXPECT_EQ(escaped("\xD8\x9C"), gone);
  for (int code = 0x2000; code < 0x2080; ++code) {
    const std::string text = {'\xE2', static_cast<char>(0x80 + (code >> 6 & 1)),
                              static_cast<char>(0x80 + (code & 0x3F))};
    const bool turns = code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
                       (code >= 0x2066 && code <= 0x2069);
    EXPECT_EQ(escaped(text), turns ? gone : text) << std::hex << code;
  }
  EXPECT_EQ(escaped("\xC0\xAF"), gone + gone);
  EXPECT_EQ(escaped("\xED\xA0\x80"), gone + gone + gone);
  EXPECT_EQ(escaped(std::string_view("a\0b\x1B\x7F", 5)), "a" + gone + "b" + gone + gone);
  const std::vector<std::byte> bytes = {std::byte{'a'}, std::byte{'b'}, std::byte{'c'},
                                        std::byte{'d'}};
  EXPECT_EQ(data_uri("image/jpeg", bytes), "data:image/jpeg;base64,YWJjZA==");
  // As `printf abc | openssl dgst -sha256 -binary | base64` prints it.
  EXPECT_EQ(source_hash("abc"), "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='");
}

}  // namespace
}  // namespace rk
