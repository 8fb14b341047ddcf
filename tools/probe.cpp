// probe: one loss and its gradient on your embeddings (--loss), or what the network sees of an
// image (--image).
#include "tools/cli.h"
#include "tools/probe_image.h"
#include "tools/probe_loss.h"

#include <string_view>

int main(int argc, char** argv) {
  bool image = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument(argv[i]);
    image = image || argument == "--image" || argument.starts_with("--image=");
  }
  if (image) {
    return rk::run_program(argc, argv, "Shows what the network sees of an image.",
                           rk::make_probe_image());
  }
  return rk::run_program(argc, argv,
                         "Computes one loss and its gradient on the embeddings of a file.\n"
                         "With --image it shows what the network sees: probe --image FILE --help",
                         rk::make_probe_loss());
}
