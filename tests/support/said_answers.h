// A parser whose answers a test makes up, where ParserProcess would ask a library.
#pragma once

#include "engine/base/error.h"
#include "engine/system/parser.h"

#include <array>
#include <functional>
#include <utility>
#include <vector>

namespace rk {

class SaidAnswers : public Parser {
 public:
  using Say = std::function<std::vector<std::byte>(std::span<const std::byte> question)>;

  explicit SaidAnswers(Say say) : say_(std::move(say)) {}

  void ask(std::span<const std::byte> question, const ParserLimits&) override {
    expect(asked_ - answered_ < kSlots, "[parser] expected at most {} questions", kSlots);
    answers_[asked_++ % kSlots] = say_(question);
  }

  std::span<const std::byte> answer() override {
    expect(asked_ > answered_, "[parser] expected a question before its answer");
    return answers_[answered_++ % kSlots];
  }

 private:
  Say say_;
  std::array<std::vector<std::byte>, kSlots> answers_;
  std::size_t asked_ = 0, answered_ = 0;
};

}  // namespace rk
