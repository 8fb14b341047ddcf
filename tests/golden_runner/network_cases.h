// The three kinds of cases in tests/golden/networks; README there and in each function's file.
#pragma once

#include "engine/device/context.h"
#include "tests/golden_runner/converted_weights.h"
#include "tests/golden_runner/golden.h"
#include "weights/hdf5/file.h"

#include <string>

namespace rk::golden {

// `name` is what the report calls the case, `group` its place in the file.
void run_layer_case(const Context& context, const Hdf5Reader& file, const std::string& group,
                    const std::string& name, Report& report);
// Whole networks, with weights that came through files of others.
void run_network_case(const Context& context, const Hdf5Reader& file, const std::string& group,
                      const std::string& name, ConvertedWeights& weights, Report& report);
void run_steps_case(const Context& context, const Hdf5Reader& file, const std::string& group,
                    const std::string& name, ConvertedWeights& weights, Report& report);

// Attributes of a case; a missing one without a fallback is an InputError.
std::string text_of(const Hdf5Reader& file, const std::string& group, const std::string& name);
std::int64_t integer_of(const Hdf5Reader& file, const std::string& group, const std::string& name);
double number_of(const Hdf5Reader& file, const std::string& group, const std::string& name,
                 double fallback, std::size_t index = 0);

// Builds an architecture that the product has, or gives the reason for skipping it.
std::string reason_to_skip(const std::string& arch);

void finish(const std::string& name, bool passed, const std::string& detail, Report& report);

}  // namespace rk::golden
