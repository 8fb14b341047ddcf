#include "tests/support/metric_goldens.h"

#include "engine/error.h"
#include "retrieval/embeddings_file.h"
#include "retrieval/evaluate.h"
#include "tools/metrics_report.h"
#include "weights/hdf5_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace rk::golden {
namespace {

namespace fs = std::filesystem;

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
  if (key == "roc_auc") return std::max(1e-6, auc_bound);
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
  }
  return out;
}

}  // namespace

std::vector<fs::path> metric_cases(const fs::path& folder) { return files_in(folder); }
std::vector<fs::path> bad_metric_cases(const fs::path& folder) { return files_in(folder / "bad"); }

MetricVerdict check_metric_case(const fs::path& path, int threads, const CudaContext* cuda) {
  const Case input = read_case(path);
  const Context context(threads);
  EvaluateOptions options;
  options.cuda = cuda;
  options.per_query = true;
  const EmbeddingView gallery = input.gallery ? input.gallery->view() : EmbeddingView{};
  const auto metrics =
      evaluate(context, input.queries.view(), input.gallery ? &gallery : nullptr, options);
  const nlohmann::json json = metrics_json(*metrics);

  const Hdf5Reader file(path.string());
  Worst worst;
  for (const std::string& dataset : file.datasets("/expected")) {
    const std::string key = dataset.substr(dataset.rfind('/') + 1);
    const std::vector<double> expected = file.read<double>(dataset);
    if (dataset.starts_with("/expected/per_query/")) {
      const nlohmann::json& got = json.at("per_query").at(key);
      if (got.size() != expected.size()) {
        worst.broken(
            fmt::format("per_query/{}: {} values for {}", key, got.size(), expected.size()));
        continue;
      }
      for (std::size_t i = 0; i < expected.size(); ++i) {
        worst.compare(fmt::format("per_query/{}[{}]", key, i), value_of(got[i]), expected[i],
                      tolerance_of(key, expected[i], 0));
      }
    } else if (key.starts_with("nmi_")) {
      continue;  // clusterings are not part of these metrics
    } else if (!json.contains(key)) {
      worst.broken(key + ": missing");
    } else {
      worst.compare(key, value_of(json.at(key)), expected.at(0),
                    tolerance_of(key, expected.at(0), metrics->roc_auc_error_bound));
    }
  }
  return worst.verdict();
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
