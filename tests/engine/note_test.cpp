#include "engine/base/note.h"

#include "tests/support/heard_notes.h"

#include <gtest/gtest.h>

#include <vector>

namespace rk {
namespace {

TEST(Note, EachLineOnceToWhoeverListens) {
  testing::internal::CaptureStderr();
  for (const char* line : {"quick", "quick"}) note(line);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "note: quick\n");
  const HeardNotes heard;
  for (const char* line : {"slow", "slower", "slow"}) note(line);
  const std::vector<std::string> expected{"slow", "slower"};
  EXPECT_EQ(heard.lines, expected);
  {
    const HeardNotes anew;
    note("slow");
    EXPECT_EQ(anew.lines, std::vector<std::string>{"slow"});
  }
  send_notes(nullptr);
  note("slow");
  EXPECT_EQ(heard.lines, expected);
}

}  // namespace
}  // namespace rk
