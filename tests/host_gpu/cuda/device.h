// Every thread has an emulated GPU of its own, which it takes for number 0.
#pragma once

namespace rk::host_gpu {

// From now on all threads have the same one, or each its own again.
void share_one_gpu(bool shared);

// From now on every call fails, as after a kernel's illegal address, or none does.
void fault(bool faulted);

}  // namespace rk::host_gpu
