// The losses once more, written from the papers as plain loops in double over every pair, triple or
// threshold, sharing nothing with the product but the structs of its inputs. One
// reference_<loss>.cpp each; the list is in reference.cpp, and a registered loss without a
// reference fails a test.
#pragma once

#include "tools/inspect/loss_file.h"

#include <map>
#include <string>
#include <vector>

namespace rk::reference {

// One gallery item of a query.
struct Item {
  double s = 0;
  bool positive = false;
  int column = 0;
};

struct Query {
  int row = 0;
  std::vector<Item> gallery;  // columns ascending, the query and its image left out
  std::vector<double> positives() const;
  std::vector<double> negatives() const;
};

// `with_self`: the query's own column is a positive of it (compat=official).
std::vector<Query> queries(const LossData<double>& data, bool with_self = false);

struct Value {
  double loss = 0;
  std::int64_t valid = 0;
  // dLoss/dE (or of the scores) where the loss is no function to differentiate; empty otherwise:
  // then the gradient is what differences of `loss` say.
  std::vector<double> grad;
};

// dE from G = dLoss/dS, G as rows over all columns: sum over pairs of G_ij (e_j to row i, e_i to
// row j).
std::vector<double> embeddings_gradient(const LossData<double>& data,
                                        const std::vector<std::vector<double>>& g);

struct Reference {
  Value (*value)(const LossData<double>& data, const LossValues& values) = nullptr;
  std::vector<std::string> specs;  // what the tests run, the defaults first
};

const std::map<std::string, Reference>& references();

Value fastap(const LossData<double>& data, const LossValues& values);
Value smooth_ap(const LossData<double>& data, const LossValues& values);
Value rambo_recall(const LossData<double>& data, const LossValues& values);
Value rambo_ap(const LossData<double>& data, const LossValues& values);
Value pnp_o(const LossData<double>& data, const LossValues& values);
Value pnp_iu(const LossData<double>& data, const LossValues& values);
Value pnp_ib(const LossData<double>& data, const LossValues& values);
Value pnp_ds(const LossData<double>& data, const LossValues& values);
Value pnp_dq(const LossData<double>& data, const LossValues& values);
Value auc_bh(const LossData<double>& data, const LossValues& values);
Value auc_ba(const LossData<double>& data, const LossValues& values);
Value wilcoxon_bh(const LossData<double>& data, const LossValues& values);
Value triplet_bh(const LossData<double>& data, const LossValues& values);
Value triplet_ba(const LossData<double>& data, const LossValues& values);
Value nsl(const LossData<double>& data, const LossValues& values);
Value proxy_anchor(const LossData<double>& data, const LossValues& values);
Value contrastive(const LossData<double>& data, const LossValues& values);
Value histogram(const LossData<double>& data, const LossValues& values);
Value multi_similarity(const LossData<double>& data, const LossValues& values);
Value recall_at_k(const LossData<double>& data, const LossValues& values);
Value sup_ap(const LossData<double>& data, const LossValues& values);
Value rambo_map(const LossData<double>& data, const LossValues& values);
Value rambo_apc(const LossData<double>& data, const LossValues& values);
Value rambo_map_apc(const LossData<double>& data, const LossValues& values);

// The contrastive loss alone, also a part of sup_ap.
double contrastive_value(const LossData<double>& data, double pos, double neg);

}  // namespace rk::reference
