// The three kinds of cases in tests/golden/networks, explained in the README there and in the file
// of each function.
#pragma once

#include "engine/device/context.h"
#include "tests/golden_runner/converted_weights.h"
#include "tests/golden_runner/golden.h"
#include "training/optimizer.h"
#include "weights/hdf5/file.h"

#include <cstdint>
#include <string>

namespace rk::golden {

// `name` is what the report calls the case, `group` its place in the file.
void run_layer_case(const Context& context, const Hdf5Reader& file, const std::string& group,
                    const std::string& name, Report& report);
// Whole networks, with weights that were written to and read from foreign files.
void run_network_case(const Context& context, const Hdf5Reader& file, const std::string& group,
                      const std::string& name, ConvertedWeights& weights, Report& report);
void run_steps_case(const Context& context, const Hdf5Reader& file, const std::string& group,
                    const std::string& name, ConvertedWeights& weights, Report& report);

// Return an attribute of a case; throw InputError if it is missing and there is no fallback.
std::string text_of(const Hdf5Reader& file, const std::string& group, const std::string& name);
std::int64_t integer_of(const Hdf5Reader& file, const std::string& group, const std::string& name);
double number_of(const Hdf5Reader& file, const std::string& group, const std::string& name,
                 double fallback, std::size_t index = 0);

// The optimizer named `kind` with the attributes of a case.
OptimizerParams optimizer_params(const Hdf5Reader& file, const std::string& group,
                                 const std::string& kind);

// Returns why cases of `arch` must be skipped; empty if the product has the architecture.
std::string reason_to_skip(const std::string& arch);

void finish(const std::string& name, bool passed, const std::string& detail, Report& report);

}  // namespace rk::golden
