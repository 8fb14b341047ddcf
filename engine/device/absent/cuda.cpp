#include "engine/device/profile.h"

namespace rk {

ProfileRange::ProfileRange(const std::string&, bool) {}

// Never pushed here.
ProfileRange::~ProfileRange() { static_cast<void>(pushed_); }

}  // namespace rk
