// How a matrix enters a product: as it is stored, or transposed.
#pragma once

namespace rk {

enum class Op : char { kNone = 'N', kTranspose = 'T' };

}  // namespace rk
