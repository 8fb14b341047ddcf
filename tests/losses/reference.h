// The losses once more, written from the papers as plain loops in double over every pair, triple or
// threshold; they share only the structs of the inputs with the product. Each reference_*.cpp
// states what the tests need to know about its losses; only how an item far from all changes some
// of them is written down in properties_test.cpp. A loss without a reference fails a test, and so
// does a reference without a loss.
#pragma once

#include "tools/common/loss_file.h"

#include <cstdint>
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
  std::vector<Item> gallery;  // by ascending column, without the query and its image
  std::vector<double> positives() const;
  std::vector<double> negatives() const;
};

// `with_self`: the query's own column is a positive of it (compat=official).
std::vector<Query> queries(const LossData<double>& data, bool with_self = false);

struct Value {
  double loss = 0;
  std::int64_t valid = 0;
  // dLoss/dE (or dLoss/dscores) if the loss is piecewise constant. Empty otherwise: the tests then
  // take differences of `loss`.
  std::vector<double> grad;
};

// Returns dE for G = dLoss/dS, rows over all columns: for every pair, G_ij e_j is added to row i,
// and G_ij e_i to row j if j is in the batch.
std::vector<double> embeddings_gradient(const LossData<double>& data,
                                        const std::vector<std::vector<double>>& g);

// The terms a loss adds up in float, from which device_rounding.h derives how far the loss may be
// off on a GPU: functions of similarities times a steepness k.
struct LossTerm {
  double steepness = 0;  // k
  int exponentials = 0, reciprocals = 0, library = 0;
  // The largest argument of an exponential that counts: all terms below e^-20 of a whole row add up
  // to less than one rounding of the sums, which are at least 1.
  double argument = 20;

  // sigmoid(k (s_j - s_p)) inside `library` functions of the library.
  static LossTerm sigmoid(double k, int library = 0) { return {k, 1, 1, library}; }
};

struct Reference {
  std::vector<std::string> specs;  // settings to test; the first is the bare name: the defaults
  Value (*value)(const LossData<double>& data, const LossValues& values) = nullptr;
  LossTerm (*term)(const LossValues& values) = nullptr;  // null: scores are given, ranks exact
  // The least share of the bound derived from `term` that the error of the value reaches where
  // pairs are close (DeviceLossCase::comes_near_its_bounds()); of the gradient, four times as much.
  double share_reached = 5e-4;
  // The value has kinks (hinges, edges of bins) on whose other side a pair may fall in float.
  bool kinked = false;
  // The gradient jumps where two items swap ranks, as they may in float; the value does not.
  bool jumps = false;
  // Why the loss changes if an item is added that is far from every other and of no class of theirs
  // (properties_test.cpp), for these specs; others do not change.
  std::map<std::string, const char*> counts_far_items = {};
};

// A global object of this type in a reference_*.cpp registers a loss's reference. These files are
// compiled into every executable that uses references: from a library, a linker would leave out
// object files whose symbols nobody names.
struct Registered {
  explicit Registered(Reference reference);  // ends the program if the name is taken
};

// By the losses' names.
const std::map<std::string, Reference>& references();

// Throws std::out_of_range, naming the loss, if it has no reference.
const Reference& reference_of(const LossSpec& spec);

// The specs of every registered loss, by name. For a loss without a reference this is the bare
// name, so that its tests fail in reference_of instead of being left out.
std::vector<std::string> all_specs();
std::vector<std::string> specs_but_of(LossKind kind);  // all others

// The contrastive loss alone, also a part of sup_ap.
double contrastive_value(const LossData<double>& data, double pos, double neg);

}  // namespace rk::reference
