// While one of these lives, this thread's float arithmetic rounds results below 1.2e-38 to zero. A
// trained network's sigmoids reach that range (tau 0.01: exp(-87)), and a product that becomes
// denormal costs the processor a hundred cycles. Processors without the switch keep denormals: they
// are slower, and results agree to within 1e-38.
#pragma once

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace rk {

class FlushDenormals {
 public:
#if defined(__SSE2__)
  FlushDenormals() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | kFlushToZero | kDenormalsAreZero); }
  ~FlushDenormals() { _mm_setcsr(saved_); }
#else
  FlushDenormals() {}
#endif
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

#if defined(__SSE2__)
 private:
  static constexpr unsigned kFlushToZero = 0x8000U;
  static constexpr unsigned kDenormalsAreZero = 0x0040U;
  unsigned saved_;
#endif
};

}  // namespace rk
