#include "tests/support/goldens/metric_goldens.h"

#include "engine/base/error.h"
#include "retrieval/evaluate.h"
#include "retrieval/files/embeddings_file.h"
#include "retrieval/protocols/vehicleid_official.h"
#include "retrieval/statistics/clustering.h"
#include "retrieval/statistics/mutual_information.h"
#include "tools/common/metrics_report.h"
#include "weights/hdf5/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

namespace rk::golden {
namespace {

namespace fs = std::filesystem;

constexpr double kNmiBeyond = 0.05;
constexpr const char* kDrawn = "/expected_vehicleid_official";

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  if (!fs::is_directory(folder)) return files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".h5") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The README's tolerances.
double tolerance_of(const std::string& key, double expected, double auc_bound) {
  if (key.starts_with("num_") || key == "first_hit_rank") return 0;
  if (key == "roc_auc") return std::clamp(auc_bound, 1e-6, 1e-3);
  if (key == "jsd") return 1e-5;
  if (key.ends_with("_mean")) return 1e-6;
  if (key.ends_with("_var") || key.starts_with("dists_")) return 1e-6 + 1e-5 * std::abs(expected);
  return 1e-9;
}

class Worst {
 public:
  void compare(const std::string& key, double got, double expected, double tolerance) {
    if (std::isnan(got) || std::isnan(expected)) {
      if (std::isnan(got) != std::isnan(expected)) {
        broken_.push_back(fmt::format("{}: {} instead of {}", key, got, expected));
      }
      return;
    }
    const double error = std::abs(got - expected);
    if (error > tolerance) {
      broken_.push_back(fmt::format("{}: {} instead of {} ({:.1e}/{:.1e})", key, got, expected,
                                    error, tolerance));
    }
    const double share = tolerance > 0 ? error / tolerance : 0;
    if (share >= share_) {
      share_ = share;
      detail_ = fmt::format("{} {:.1e}/{:.1e}", key, error, tolerance);
    }
    ++compared_;
  }
  void broken(const std::string& what) { broken_.push_back(what); }
  MetricVerdict verdict() const {
    if (broken_.empty() && compared_ > 0) {
      return {true, fmt::format("{} values, worst: {}", compared_, detail_)};
    }
    std::string all = compared_ == 0 ? "nothing was compared" : "";
    for (std::size_t i = 0; i < std::min<std::size_t>(broken_.size(), 5); ++i) {
      all += (all.empty() ? "" : "; ") + broken_[i];
    }
    if (broken_.size() > 5) all += fmt::format("; and {} more", broken_.size() - 5);
    return {false, all};
  }

 private:
  double share_ = -1;
  int compared_ = 0;
  std::string detail_;
  std::vector<std::string> broken_;
};

double value_of(const nlohmann::json& json) {
  return json.is_null() ? std::nan("") : json.get<double>();
}

struct Case {
  EmbeddingSet queries;
  std::optional<EmbeddingSet> gallery;
};

Case read_case(const fs::path& path) {
  const Hdf5Reader file(path.string());
  Case out{read_embeddings(file), std::nullopt};
  if (file.has("/gallery_embeddings")) {
    out.gallery = read_embeddings(file, "gallery_");
    check_same_space(out.queries, path.string(), *out.gallery, path.string());
    check_same_labels(out.queries, path.string(), *out.gallery, path.string());
  }
  return out;
}

}  // namespace

std::vector<fs::path> metric_cases(const fs::path& folder) { return files_in(folder); }
std::vector<fs::path> bad_metric_cases(const fs::path& folder) { return files_in(folder / "bad"); }

MetricVerdict compare_with_case(const fs::path& path, const nlohmann::json& metrics,
                                const nlohmann::json& drawn) {
  const Hdf5Reader file(path.string());
  Worst worst;
  const auto compare_array = [&](const std::string& dataset, const std::string& name,
                                 const std::string& key, const nlohmann::json& got) {
    const std::vector<double> expected = file.read<double>(dataset);
    if (got.size() != expected.size()) {
      worst.broken(fmt::format("{}: {} values for {}", name, got.size(), expected.size()));
      return;
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
      worst.compare(fmt::format("{}[{}]", name, i), value_of(got[i]), expected[i],
                    tolerance_of(key, expected[i], 0));
    }
  };
  const auto auc_bound = value_of(metrics.value("roc_auc_error_bound", nlohmann::json(nullptr)));
  for (const std::string& dataset : file.datasets("/expected")) {
    const std::string key = dataset.substr(dataset.rfind('/') + 1);
    if (dataset.starts_with("/expected/per_query/")) {
      compare_array(dataset, "per_query/" + key, key, metrics.at("per_query").at(key));
    } else if (key == "nmi_mean") {
      // NMI depends on the start of k-means: within the range of 15 starts, or slightly beyond.
      const double least = file.read<double>("/expected/nmi_min").at(0) - kNmiBeyond;
      const double most = file.read<double>("/expected/nmi_max").at(0) + kNmiBeyond;
      worst.compare("nmi", value_of(metrics.at("nmi")), (least + most) / 2, (most - least) / 2);
    } else if (key.starts_with("nmi_")) {
      continue;
    } else if (!metrics.contains(key)) {
      worst.broken(key + ": missing");
    } else {
      const double expected = file.read<double>(dataset).at(0);
      worst.compare(key, value_of(metrics.at(key)), expected,
                    tolerance_of(key, expected, std::isnan(auc_bound) ? 0 : auc_bound));
    }
  }
  if (!has_drawn_galleries(path)) return worst.verdict();
  for (const std::string& dataset : file.datasets(kDrawn)) {
    const std::string key = dataset.substr(dataset.rfind('/') + 1);
    if (dataset.find("/per_draw/") != std::string::npos) {
      compare_array(dataset, "per_draw/" + key, key, drawn.at("per_draw").at(key));
    } else {
      const double expected = file.read<double>(dataset).at(0);
      worst.compare("drawn " + key, value_of(drawn.at(key)), expected,
                    tolerance_of(key, expected, 0));
    }
  }
  return worst.verdict();
}

bool has_drawn_galleries(const fs::path& path) {
  return Hdf5Reader(path.string()).has(std::string(kDrawn) + "/recall_at_1");
}

MetricVerdict check_metric_case(const fs::path& path, const Context& context) {
  const Case input = read_case(path);
  EvaluateOptions options;
  options.per_query = true;
  const EmbeddingView gallery_view = input.gallery ? input.gallery->view() : EmbeddingView{};
  const EmbeddingView* gallery = input.gallery ? &gallery_view : nullptr;
  nlohmann::json json = metrics_json(*evaluate(context, input.queries.view(), gallery, options));

  std::vector<std::int64_t> labels = input.queries.labels;
  if (input.gallery) {
    labels.insert(labels.end(), input.gallery->labels.begin(), input.gallery->labels.end());
  }
  ClusteringOptions clustering;
  clustering.clusters =
      static_cast<std::int64_t>(std::set<std::int64_t>(labels.begin(), labels.end()).size());
  const auto clusters = k_means(context, input.queries.view(), gallery, clustering);
  json["nmi"] = normalized_mutual_information(labels, clusters->cluster);

  nlohmann::json drawn;
  if (has_drawn_galleries(path)) {
    const DrawOptions draws;
    drawn = draws_json(*vehicleid_official(context, input.queries.view(), draws), draws);
  }
  return compare_with_case(path, json, drawn);
}

MetricVerdict check_bad_metric_case(const fs::path& path) {
  try {
    read_case(path);
  } catch (const InputError& error) {
    const std::string message = error.what();
    const bool named = message.find(path.filename().string()) != std::string::npos;
    const bool one_line = message.find('\n') == std::string::npos;
    return {named && one_line, message};
  }
  return {false, "was accepted"};
}

}  // namespace rk::golden
