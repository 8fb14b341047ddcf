// Whether this build watches memory or threads: RK_SANITIZED is 1 under AddressSanitizer and
// ThreadSanitizer, which take memory of their own and end the program at an absurd allocation.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RK_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RK_SANITIZED 1
#endif
#endif
#ifndef RK_SANITIZED
#define RK_SANITIZED 0
#endif
