// What answers questions about a file that nobody vouches for: a ParserProcess, or what a test puts
// in its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rk {

struct ParserLimits {
  std::uint64_t memory_bytes = 0;  // what it may map beyond what it inherits
  std::uint64_t cpu_seconds = 0;   // of its life so far
};

class Parser {
 public:
  static constexpr std::size_t kSlots = 2;

  virtual ~Parser() = default;

  // The parser keeps to `limits` from then on. At most kSlots questions may be without an answer.
  virtual void ask(std::span<const std::byte> question, const ParserLimits& limits) = 0;

  // The answer to the oldest question, there until the question after the next is asked. Nothing in
  // it may be trusted. InputError where the parser refuses, or is gone.
  virtual std::span<const std::byte> answer() = 0;
};

}  // namespace rk
