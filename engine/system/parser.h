// Answers questions about an untrusted file: a ParserProcess, or a test's substitute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rk {

struct ParserLimits {
  std::uint64_t memory_bytes = 0;  // that it may map beyond what it inherits
  std::uint64_t cpu_seconds = 0;   // over its whole life so far
};

class Parser {
 public:
  static constexpr std::size_t kSlots = 2;

  virtual ~Parser() = default;

  // The parser keeps to `limits` from now on. At most kSlots questions may be unanswered.
  virtual void ask(std::span<const std::byte> question, const ParserLimits& limits) = 0;

  // Returns the answer to the oldest question, valid until the question after the next is asked.
  // The caller must not trust its contents. Throws InputError if the parser refuses, or is gone.
  virtual std::span<const std::byte> answer() = 0;
};

}  // namespace rk
