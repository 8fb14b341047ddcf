// probe: one loss and its gradient on your embeddings (--loss), what the network sees of an image
// (--image), or what a data set holds and what is wrong with it (--data).
#include "tools/cli/cli.h"
#include "tools/probe/probe_data.h"
#include "tools/probe/probe_image.h"
#include "tools/probe/probe_loss.h"

#include <string_view>

int main(int argc, char** argv) {
  const auto given = [&](std::string_view flag) {
    for (int i = 1; i < argc; ++i) {
      const std::string_view argument(argv[i]);
      if (argument.starts_with(flag) &&
          (argument.size() == flag.size() || argument[flag.size()] == '=')) {
        return true;
      }
    }
    return false;
  };
  if (given("--image")) {
    return rk::run_program(argc, argv, "Shows what the network sees of an image.",
                           rk::make_probe_image());
  }
  if (given("--data")) {
    return rk::run_program(argc, argv,
                           "Looks through a data set: what it holds, what cannot be read, what is "
                           "there twice.",
                           rk::make_probe_data());
  }
  return rk::run_program(argc, argv,
                         "Computes one loss and its gradient on the embeddings of a file.\n"
                         "With --image it shows what the network sees: probe --image FILE --help\n"
                         "With --data it looks through a data set: probe --data SPEC --help",
                         rk::make_probe_loss());
}
