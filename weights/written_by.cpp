#include "weights/written_by.h"

#include <string>

namespace rk {
namespace {

constexpr const char* kAttribute = "written_by";

}  // namespace

void sign(Hdf5Writer& file) {
  file.set_attribute("/", kAttribute, std::string("Rankine ") + RK_VERSION);
}

bool is_signed(const Hdf5Reader& file) {
  return file.text_attribute("/", kAttribute).value_or("").starts_with("Rankine ");
}

}  // namespace rk
