// The losses once more, written from the papers as plain loops in double over every pair, triple or
// threshold, sharing nothing with the product but the structs of its inputs. A reference_*.cpp
// states all that the tests must know of its losses; a loss without a reference fails a test, and a
// reference without a loss.
#pragma once

#include "tools/common/loss_file.h"

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

// What a loss adds up in float, of which device_rounding.h derives how far it is off on a GPU:
// functions of similarities times a steepness k.
struct LossTerm {
  double steepness = 0;  // k
  int exponentials = 0, reciprocals = 0, library = 0;
  // The longest argument of an exponential that counts: behind e^-20 a whole row adds up to less
  // than a rounding of the sums, which are at least 1.
  double argument = 20;

  // sigmoid(k (s_j - s_p)) within so many functions of the library.
  static LossTerm sigmoid(double k, int library = 0) { return {k, 1, 1, library}; }
};

struct Reference {
  std::vector<std::string> specs;  // what the tests run; the first is the name, the defaults
  Value (*value)(const LossData<double>& data, const LossValues& values) = nullptr;
  LossTerm (*term)(const LossValues& values) = nullptr;
};

// An object of this in a reference_*.cpp makes a loss's reference known. Those files are sources of
// every executable that asks for references: of a library a linker leaves out what nobody names.
struct Registered {
  explicit Registered(Reference reference);  // ends the program if the name is taken
};

// By the losses' names.
const std::map<std::string, Reference>& references();

// Throws std::out_of_range, naming the loss, where it has none.
const Reference& reference_of(const LossSpec& spec);

// The specs of every registered loss, by name. Of one without a reference it is the bare name, so
// that its tests fail in reference_of instead of being left out.
std::vector<std::string> all_specs();

// The contrastive loss alone, also a part of sup_ap.
double contrastive_value(const LossData<double>& data, double pos, double neg);

}  // namespace rk::reference
