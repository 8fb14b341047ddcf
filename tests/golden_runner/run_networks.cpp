// tests/golden/networks: layers.h5 (single layers and optimizers) and steps.h5 (ten optimizer
// steps); every other .h5 of the folder holds an architecture. Whole networks take their weights
// from files of PyTorch, safetensors and Keras (converted_weights.h).
#include "tests/golden_runner/network_cases.h"

#include "engine/base/error.h"
#include "weights/architectures/registry.h"

#include <algorithm>
#include <vector>

namespace rk::golden {
namespace {

// A case is a group with attribute `op`; it may lie one level down (/conv/3x3).
void run_layers(const Context& context, const Hdf5Reader& file, const std::string& group,
                const std::string& name, Report& report) {
  if (!group.empty() && file.text_attribute(group, "op")) {
    run_layer_case(context, file, group, name, report);
    return;
  }
  for (const std::string& child : file.children(group.empty() ? "/" : group)) {
    run_layers(context, file, group + "/" + child, name + "/" + child, report);
  }
}

}  // namespace

std::string text_of(const Hdf5Reader& file, const std::string& group, const std::string& name) {
  const auto value = file.text_attribute(group, name);
  if (!value) {
    fail<InputError>("{}: {} has no attribute {}; copy the file again", file.name(), group, name);
  }
  return *value;
}

std::int64_t integer_of(const Hdf5Reader& file, const std::string& group, const std::string& name) {
  const auto value = file.integer_attribute(group, name);
  if (!value) {
    fail<InputError>("{}: {} has no attribute {}; copy the file again", file.name(), group, name);
  }
  return *value;
}

double number_of(const Hdf5Reader& file, const std::string& group, const std::string& name,
                 double fallback, std::size_t index) {
  const auto values = file.number_attribute(group, name);
  return values ? values->at(index) : fallback;
}

std::string reason_to_skip(const std::string& arch) {
  const std::vector<std::string>& built = network_names();
  if (std::ranges::find(built, arch) != built.end()) return "";
  return arch + ": architecture not built yet";
}

void finish(const std::string& name, bool passed, const std::string& detail, Report& report) {
  if (passed) {
    report.pass(name, detail);
  } else {
    report.fail(name, detail);
  }
}

void run_networks(const std::filesystem::path& folder, const Device& device, Report& report) {
  const Context context(0, device);
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".h5") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  ConvertedWeights weights;
  for (const std::filesystem::path& path : paths) {
    const std::string stem = path.stem().string();
    const std::string prefix = "networks/" + stem;
    const Hdf5Reader file(path.string());
    if (device.cuda && (stem == "layers" || stem == "steps")) {
      report.skip(prefix, "on a GPU whole networks are compared");
      continue;
    }
    if (stem == "layers") {
      run_layers(context, file, "", prefix, report);
      continue;
    }
    for (const std::string& name : file.children("/")) {
      const auto run = stem == "steps" ? run_steps_case : run_network_case;
      run(context, file, "/" + name, prefix + "/" + name, weights, report);
    }
  }
}

}  // namespace rk::golden
