// Warnings that do not affect results: prints `note: <line>` on standard error, each line once,
// however often its cause recurs. May be called from any thread.
#pragma once

#include <functional>
#include <string>

namespace rk {

void note(const std::string& line);
// Prints only the first line of each kind: for warnings that may apply to every file of a data set.
void note_first(const std::string& kind, const std::string& line);

// Redirects notes to `to`; null drops them (--quiet). Forgets which lines were printed already, so
// that `to` gets them again.
void send_notes(std::function<void(const std::string&)> to);

}  // namespace rk
