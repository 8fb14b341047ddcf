// What is said if a GPU's memory does not suffice for an allocation.
#pragma once

#include <cstdint>
#include <string>

namespace rk {

std::string gibibytes(std::int64_t bytes);  // "1.50 GiB"

std::string out_of_memory(std::int64_t asked, std::int64_t free, std::int64_t total);

}  // namespace rk
