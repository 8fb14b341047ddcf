// Writes a page of eval, and says what it comes from.
#pragma once

#include "engine/device/context.h"
#include "retrieval/report/facts.h"
#include "tools/cli/cli.h"

#include <string>

namespace rk {

// The command, the version and commit, the machine and the date.
ReportFacts page_facts(const Context& context, const CommonOptions& common);

// Replaces the file, and prints its path to standard error.
void write_page(const std::string& path, const std::string& page, const CommonOptions& common);

}  // namespace rk
