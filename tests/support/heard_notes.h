// The notes (engine/base/note.h) of a test: while an object lives, they are collected instead of
// printed.
#pragma once

#include "engine/base/note.h"

#include <cstdio>
#include <string>
#include <vector>

namespace rk {

class HeardNotes {
 public:
  HeardNotes() {
    send_notes([this](const std::string& line) { lines.push_back(line); });
  }
  ~HeardNotes() {
    send_notes(
        [](const std::string& line) { std::fputs(("note: " + line + "\n").c_str(), stderr); });
  }
  HeardNotes(const HeardNotes&) = delete;
  HeardNotes& operator=(const HeardNotes&) = delete;

  std::vector<std::string> lines;
};

}  // namespace rk
