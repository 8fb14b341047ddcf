// The settings that a run's checkpoint keeps.
#pragma once

#include "weights/checkpoint.h"

#include <nlohmann/json.hpp>

#include <string>

namespace rk {

// Throws InputError unless they are a JSON object.
nlohmann::ordered_json stored_settings(const Checkpoint& checkpoint);

// The text of one of them; empty if it is missing or no text.
std::string stored_text(const nlohmann::ordered_json& settings, const std::string& name);

}  // namespace rk
