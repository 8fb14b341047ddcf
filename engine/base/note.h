// Warnings about what does not change results: `note: <line>` on standard error, each line once,
// however often its cause returns. From any thread.
#pragma once

#include <functional>
#include <string>

namespace rk {

void note(const std::string& line);
// Only the first line of a kind: for what a whole collection of files may have.
void note_first(const std::string& kind, const std::string& line);

// Where notes go from now on, and again those that were there; null: nowhere (--quiet).
void send_notes(std::function<void(const std::string&)> to);
// Back to standard error.
void send_notes_to_standard_error();

}  // namespace rk
