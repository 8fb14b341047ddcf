#include "tests/golden_runner/golden.h"

#include <fmt/format.h>

#include <cstdio>

namespace rk::golden {
namespace {

void line(const char* verdict, const std::string& name, const std::string& text) {
  fmt::print("{} {}  {}\n", verdict, name, text);
  std::fflush(stdout);  // a case that crashes must not take the earlier verdicts with it
}

}  // namespace

void Report::pass(const std::string& name, const std::string& detail) {
  ++passed_;
  line("pass", name, detail);
}

void Report::fail(const std::string& name, const std::string& detail) {
  ++failed_;
  line("FAIL", name, detail);
}

void Report::skip(const std::string& name, const std::string& reason) {
  ++skipped_;
  line("skip", name, reason);
}

}  // namespace rk::golden
