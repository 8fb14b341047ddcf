#include "tests/losses/reference.h"

#include "losses/registry.h"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace rk::reference {
namespace {

double dot(const double* a, const double* b, std::int64_t dim) {
  double total = 0;
  for (std::int64_t d = 0; d < dim; ++d) total += a[d] * b[d];
  return total;
}

const double* column(const LossData<double>& data, std::int64_t j) {
  return j < data.rows ? data.embeddings.data() + j * data.dim
                       : data.memory_embeddings.data() + (j - data.rows) * data.dim;
}

// Created by the first registration: other files' objects may be initialised before this file's.
std::map<std::string, Reference>& all() {
  static std::map<std::string, Reference> list;
  return list;
}

std::vector<double> scores_of(const std::vector<Item>& gallery, bool positive) {
  std::vector<double> out;
  for (const Item& item : gallery) {
    if (item.positive == positive) out.push_back(item.s);
  }
  return out;
}

}  // namespace

Registered::Registered(Reference reference) {
  const std::string name = reference.specs.at(0);
  if (all().emplace(name, std::move(reference)).second) return;
  std::fprintf(stderr, "%s has two references\n", name.c_str());
  std::abort();
}

std::vector<double> Query::positives() const { return scores_of(gallery, true); }
std::vector<double> Query::negatives() const { return scores_of(gallery, false); }

std::vector<Query> queries(const LossData<double>& data, bool with_self) {
  const auto at = [&](const std::vector<std::int64_t>& batch,
                      const std::vector<std::int64_t>& memory, std::int64_t j) {
    return j < data.rows ? batch[static_cast<std::size_t>(j)]
                         : memory[static_cast<std::size_t>(j - data.rows)];
  };
  std::vector<Query> out;
  for (std::int64_t i = 0; i < data.rows; ++i) {
    Query query;
    query.row = static_cast<int>(i);
    for (std::int64_t j = 0; j < data.rows + data.memory; ++j) {
      const bool same_image = !data.image_ids.empty() && at(data.image_ids, data.memory_image_ids,
                                                            j) == at(data.image_ids, {}, i);
      if (j == i ? !with_self : same_image) continue;
      query.gallery.push_back({dot(column(data, i), column(data, j), data.dim),
                               at(data.labels, data.memory_labels, j) == at(data.labels, {}, i),
                               static_cast<int>(j)});
    }
    out.push_back(std::move(query));
  }
  return out;
}

std::vector<double> embeddings_gradient(const LossData<double>& data,
                                        const std::vector<std::vector<double>>& g) {
  std::vector<double> grad(data.embeddings.size(), 0.0);
  for (std::int64_t i = 0; i < data.rows; ++i) {
    for (std::int64_t j = 0; j < data.rows + data.memory; ++j) {
      const double factor = g[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
      for (std::int64_t d = 0; d < data.dim; ++d) {
        grad[static_cast<std::size_t>(i * data.dim + d)] += factor * column(data, j)[d];
        if (j < data.rows) {
          grad[static_cast<std::size_t>(j * data.dim + d)] += factor * column(data, i)[d];
        }
      }
    }
  }
  return grad;
}

const std::map<std::string, Reference>& references() { return all(); }

const Reference& reference_of(const LossSpec& spec) {
  const auto found = all().find(spec.entry->name);
  if (found == all().end()) {
    throw std::out_of_range(spec.entry->name + " is registered in no tests/losses/reference_*.cpp");
  }
  return found->second;
}

std::vector<std::string> all_specs() {
  std::map<std::string, std::vector<std::string>> by_name;
  for (const LossEntry& entry : loss_registry()) {
    const auto found = all().find(entry.name);
    by_name[entry.name] =
        found == all().end() ? std::vector<std::string>{entry.name} : found->second.specs;
  }
  std::vector<std::string> out;
  for (const auto& [name, specs] : by_name) out.insert(out.end(), specs.begin(), specs.end());
  return out;
}

std::vector<std::string> specs_but_of(LossKind kind) {
  std::vector<std::string> specs = all_specs();
  std::erase_if(specs,
                [&](const std::string& spec) { return parse_loss(spec).entry->kind == kind; });
  return specs;
}

}  // namespace rk::reference
