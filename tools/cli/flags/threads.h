// The number of threads that a flag, a recipe or a run's settings name. Results may depend on it,
// so that a number is taken as given or refused, never lowered.
#pragma once

#include <string>

namespace rk {

// Throws UsageError for more than eight threads a processor, which do little but wait for one
// another; a note says so of more than one. `origin` begins the message: "--threads 400".
void check_threads(int threads, const std::string& origin);

// The note alone.
void note_threads(int threads, const std::string& origin);

}  // namespace rk
