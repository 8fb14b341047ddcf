#include "engine/base/note.h"

#include <gtest/gtest.h>

#include <vector>

namespace rk {
namespace {

TEST(Note, EachLineOnceToWhoeverListens) {
  std::vector<std::string> heard;
  send_notes([&](const std::string& line) { heard.push_back(line); });
  for (const char* line : {"slow", "slower", "slow"}) note(line);
  EXPECT_EQ(heard, (std::vector<std::string>{"slow", "slower"}));
  send_notes(nullptr);
  note("slow");
  testing::internal::CaptureStderr();
  send_notes_to_standard_error();
  note("slow");
  note("slow");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "note: slow\n");
  EXPECT_EQ(heard.size(), 2U);
}

}  // namespace
}  // namespace rk
