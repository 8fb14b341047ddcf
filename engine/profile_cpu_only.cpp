#include "engine/profile.h"

namespace rk {

ProfileRange::ProfileRange(const std::string&, bool) {}

ProfileRange::~ProfileRange() = default;

}  // namespace rk
