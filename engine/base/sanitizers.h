// RK_SANITIZED is 1 in builds with AddressSanitizer or ThreadSanitizer, which reserve memory of
// their own and abort the program at an absurdly large allocation.
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
