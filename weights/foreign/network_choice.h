// Finds the networks in a file by the names that programs give their tensors, and chooses one.
//
// The averaged network is preferred to the trained one, the query encoder to the key encoder, the
// teacher to the student, and each of them to what an optimizer keeps of it (moments, gradients).
// A copy that is not whole, as one of parameters without statistics, or that is another network
// than the one asked for, is passed over if a later one will do.
#pragma once

#include "weights/foreign/network_kind.h"

namespace rk {

struct ChosenNetwork {
  std::string names;  // whose names it has, in words
  // All tensors of the file: those of the network by torchvision's names, the others behind "//".
  NamedTensors tensors;
  std::string note;  // on a choice among several; else empty
};

// `arch`: the network asked for; empty: any. Throws InputError if no names are known.
ChosenNetwork choose_network(const TensorFile& file, const std::string& arch);

}  // namespace rk
