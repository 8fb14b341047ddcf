// How --help is laid out.
#pragma once

#include <memory>

namespace CLI {
class FormatterBase;
}  // namespace CLI

namespace rk {

// Descriptions are wrapped at words; other programs are named as they are called beside `program`,
// an argv[0] (tools/cli/flags/program_names.h).
std::shared_ptr<CLI::FormatterBase> help_format(const char* program);

}  // namespace rk
