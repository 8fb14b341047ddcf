#include "weights/foreign/model_text.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/printable.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cstdint>

namespace rk {
namespace {

using nlohmann::ordered_json;

// Stated explicitly, since other programs may otherwise resize without it.
const std::string kAntialiasing = " with antialiasing";

constexpr std::size_t kMostText = 64 << 10;  // our own has about 500 bytes

[[noreturn]] void refuse_text(const std::string& path, const std::string& what) {
  fail<InputError>(
      "{}: its metadata \"{}\", which says how the network pools and wants its images, {}; convert "
      "the network again, or remove these metadata",
      path, kModelKey, what);
}

// The library makes 224 of 224.9, and three numbers of five.
bool is_like(const ordered_json& value, const std::int64_t&) { return value.is_number_integer(); }
bool is_like(const ordered_json& value, const std::array<double, 3>& like) {
  return value.is_array() && value.size() == like.size();
}
template <class T> bool is_like(const ordered_json&, const T&) { return true; }

std::string expected(const std::int64_t&) { return "an integer"; }
std::string expected(const double&) { return "a number"; }
std::string expected(const bool&) { return "true or false"; }
std::string expected(const std::string&) { return "a text"; }
std::string expected(const std::array<double, 3>&) { return "three numbers"; }

class Fields {
 public:
  Fields(const std::string& text, const std::string& path)
      : json_(ordered_json::parse(text, nullptr, false)), path_(path) {
    if (!json_.is_object()) refuse_text(path_, "is not what Rankine writes");
  }

  // Copies the field of that name, if it exists.
  template <class T> void take(const char* name, T& to) const {
    const auto found = json_.find(name);
    if (found == json_.end()) return;
    try {
      if (is_like(*found, to)) {
        to = found->get<T>();
        return;
      }
    } catch (const nlohmann::json::type_error&) {
      // Of another type: refused below.
    }
    refuse_text(path_, fmt::format("has {} where {} should be {}", in_quotes(found->dump()), name,
                                   expected(to)));
  }

 private:
  ordered_json json_;
  std::string path_;
};

ordered_json json_of(const ModelDescription& model) {
  ordered_json json = {{"arch", model.arch},
                       {"pool", model.pool},
                       {"gem_p", model.gem_p},
                       {"dim", model.dim},
                       {"stride_in_1x1", model.stride_in_1x1},
                       {"input_mean", model.input_mean},
                       {"input_std", model.input_std},
                       {"input_scale", model.input_scale},
                       {"channel_order", model.channel_order},
                       {"resize", model.resize},
                       {"interpolation", model.interpolation + kAntialiasing},
                       {"crop", model.crop},
                       {"source_sha256", model.source_sha256}};
  if (model.stretch) json["stretch"] = true;
  if (model.upright) json["exif"] = "turn";
  return json;
}

}  // namespace

std::string input_text(const ModelDescription& model) {
  return fmt::format("{} pixels / {:g}, less the mean {:.8g}, / {:.8g}; {}{}, {}{}, centre crop {}",
                     model.channel_order, model.input_scale, fmt::join(model.input_mean, " "),
                     fmt::join(model.input_std, " "),
                     model.upright ? "turned upright by EXIF; " : "",
                     model.stretch ? fmt::format("stretched to {0} x {0}", model.resize)
                                   : fmt::format("short side {}", model.resize),
                     model.interpolation, kAntialiasing, model.crop);
}

std::string head_text(const ModelDescription& model) {
  const std::string pooling = model.pool == "gem"
                                  ? fmt::format("gem pooling with the exponent {:g}", model.gem_p)
                              : model.pool == "max" ? "maximum pooling"
                                                    : "average pooling";
  return fmt::format("{}, {}{}", pooling,
                     model.dim > 0 ? fmt::format("an embedding of {}", counted(model.dim, "number"))
                                   : "no embedding layer",
                     model.stride_in_1x1 ? "; strides in the first 1x1 of a block" : "");
}

std::string replaced_text(const ModelDescription& own, const ModelDescription& model) {
  ordered_json before = json_of(own), after = json_of(model);
  for (ordered_json* json : {&before, &after}) {
    json->emplace("stretch", false);
    json->emplace("exif", "ignore");
  }
  std::string out;
  for (const auto& [key, value] : after.items()) {
    if (key == "dim" || key == "source_sha256") continue;  // of the weights themselves
    const ordered_json& old = before.at(key);
    if (value == old) continue;
    out += fmt::format("{}{} {} in place of {}", out.empty() ? "" : ", ", key, value.dump(),
                       old.dump());
  }
  return out;
}

std::string model_text(const ModelDescription& model) { return json_of(model).dump(); }

void read_model_text(const std::string& text, const std::string& path, ModelDescription& model) {
  // A NUL would end the text for the library, which would then not see what follows.
  if (text.size() > kMostText || text.find('\0') != std::string::npos) {
    refuse_text(path, "is not what Rankine writes");
  }
  const Fields fields(text, path);
  fields.take("pool", model.pool);
  fields.take("gem_p", model.gem_p);
  fields.take("stride_in_1x1", model.stride_in_1x1);
  fields.take("input_mean", model.input_mean);
  fields.take("input_std", model.input_std);
  fields.take("input_scale", model.input_scale);
  fields.take("channel_order", model.channel_order);
  fields.take("resize", model.resize);
  fields.take("stretch", model.stretch);
  fields.take("interpolation", model.interpolation);
  // Early files of version 0.1.0 do not state it.
  if (model.interpolation.ends_with(kAntialiasing)) {
    model.interpolation.resize(model.interpolation.size() - kAntialiasing.size());
  }
  fields.take("crop", model.crop);
  std::string exif = model.upright ? "turn" : "";
  fields.take("exif", exif);
  model.upright = exif == "turn";
}

}  // namespace rk
