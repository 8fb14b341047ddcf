#include "tests/support/goldens/loss_goldens.h"

#include "engine/base/error.h"
#include "losses/registry.h"
#include "tools/common/normalized_loss.h"
#include "weights/hdf5/file.h"

#include <algorithm>
#include <cmath>

namespace rk::golden {
namespace {

// Removes from each row of `grad` the part along its own embedding, if that is not 0.
void make_tangent(const std::vector<double>& embeddings, std::int64_t dim,
                  std::vector<double>& grad) {
  for (std::size_t at = 0; at < grad.size(); at += static_cast<std::size_t>(dim)) {
    double along = 0;
    double square = 0;
    for (std::size_t d = at; d < at + static_cast<std::size_t>(dim); ++d) {
      along += grad[d] * embeddings[d];
      square += embeddings[d] * embeddings[d];
    }
    if (square == 0) continue;
    for (std::size_t d = at; d < at + static_cast<std::size_t>(dim); ++d) {
      grad[d] -= along / square * embeddings[d];
    }
  }
}

struct Norms {
  double difference = 0;
  double expected = 0;
};

Norms norms(const std::vector<double>& got, const std::vector<double>& expected) {
  Norms out;
  for (std::size_t i = 0; i < got.size(); ++i) {
    out.difference += (got[i] - expected[i]) * (got[i] - expected[i]);
    out.expected += expected[i] * expected[i];
  }
  return {std::sqrt(out.difference), std::sqrt(out.expected)};
}

double attribute(const Hdf5Reader& file, const std::string& name) {
  const auto values = file.number_attribute("/", name);
  if (!values || values->size() != 1) fail<InputError>("{}: no attribute {}", file.name(), name);
  return values->front();
}

}  // namespace

std::vector<std::filesystem::path> loss_cases(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".h5") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

template <class S>
LossVerdict check_loss_case(const std::filesystem::path& path, double tolerance_factor,
                            const Device& device) {
  LossVerdict verdict;
  const Hdf5Reader file(path.string());
  const std::string text = file.text_attribute("/", "spec").value_or("");
  const std::string name = text.substr(0, text.find(':'));
  const auto& registry = loss_registry();
  if (std::none_of(registry.begin(), registry.end(),
                   [&](const LossEntry& entry) { return entry.name == name; })) {
    verdict.skipped = true;
    verdict.detail = "no loss '" + name + "' is registered";
    return verdict;
  }
  const LossSpec spec = parse_loss(text);
  const LossKind kind = spec.entry->kind;
  const LossData<S> data = read_loss_file<S>(path.string(), kind);
  const Context context(0, device);
  LossFunction<S> function(context, spec, data.shape(), false);
  const LossResult<S> output = function(data);

  const double rtol_loss = attribute(file, "rtol_loss") * tolerance_factor;
  const double atol_loss = attribute(file, "atol_loss") * tolerance_factor;
  const double rtol_grad = attribute(file, "rtol_grad") * tolerance_factor;
  const double atol_grad = attribute(file, "atol_grad") * tolerance_factor;
  const double expected_loss = file.read<double>("/expected/loss").at(0);
  const auto expected_valid = file.read<std::int64_t>("/expected/valid_queries").at(0);

  const double loss_error = std::abs(output.loss - expected_loss);
  const double loss_limit = rtol_loss * std::abs(expected_loss) + atol_loss;
  verdict.passed = loss_error <= loss_limit;
  verdict.detail = fmt::format("loss {:.1e}/{:.1e}", loss_error, loss_limit);

  const bool tangent = file.text_attribute("/", "compare").value_or("full") == "tangent";
  const auto compare = [&](const char* what, const std::vector<S>& got, const std::string& dataset,
                           bool along_embeddings) {
    std::vector<double> ours(got.begin(), got.end());
    std::vector<double> theirs = file.read<double>(dataset);
    if (ours.size() != theirs.size()) {
      verdict.passed = false;
      verdict.detail +=
          fmt::format(" {} has {} elements, not {}", what, ours.size(), theirs.size());
      return;
    }
    if (tangent && along_embeddings) {
      const std::vector<double> at(data.embeddings.begin(), data.embeddings.end());
      make_tangent(at, data.dim, ours);
      make_tangent(at, data.dim, theirs);
    }
    const Norms size = norms(ours, theirs);
    const double limit = rtol_grad * size.expected + atol_grad;
    verdict.passed = verdict.passed && size.difference <= limit;  // false for NaN
    verdict.detail += fmt::format(" {} {:.1e}/{:.1e}", what, size.difference, limit);
  };
  compare("grad", output.grad, "/expected/grad", kind != LossKind::kScores);
  if (kind == LossKind::kProxies) {
    compare("grad_proxies", output.grad_proxies, "/expected/grad_proxies", false);
  }
  if (output.valid_queries != expected_valid) {
    verdict.passed = false;
    verdict.detail +=
        fmt::format(" valid_queries {}, expected {}", output.valid_queries, expected_valid);
  }
  return verdict;
}

template LossVerdict check_loss_case<float>(const std::filesystem::path&, double, const Device&);
template LossVerdict check_loss_case<double>(const std::filesystem::path&, double, const Device&);

}  // namespace rk::golden
