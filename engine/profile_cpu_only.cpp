#include "engine/profile.h"

namespace rk {

ProfileRange::ProfileRange(const std::string&) {}

ProfileRange::~ProfileRange() = default;

}  // namespace rk
