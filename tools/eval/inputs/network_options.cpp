#include "tools/eval/inputs/network_options.h"

#include "data/sources/dataset.h"
#include "layers/networks/network.h"

namespace rk {

void NetworkOptions::add_to(CLI::App& app) {
  auto* network = app.add_option("--checkpoint,--weights", checkpoint,
                                 "embed --data with this network: RUN/best.h5, or weights in "
                                 "any file that convert reads, whose pooled features are "
                                 "then the embeddings")
                      ->type_name("FILE");
  app.add_option("--arch", arch,
                 "of weights in a file of somebody else's; empty: as their shapes say")
      ->check(CLI::IsMember(network_names()))
      ->needs(network);
  app.add_option("--data", data,
                 "images for --checkpoint, KIND:PATH[,key=value]\n" + dataset_help())
      ->type_name("SPEC")
      ->needs(network);
  app.add_option("--split", split, "which of its splits: train, val, test, query or gallery")
      ->needs(network);
  app.add_option("--save-embeddings", save,
                 "also write the embeddings to this file, from which --embeddings, --gallery and "
                 "--index read them")
      ->type_name("FILE");
  app.add_option("--batch", batch, "images at a time")
      ->check(CLI::Range(1, 1 << 16))
      ->needs(network);
  app.add_option("--workers", workers, "threads that read images")
      ->check(CLI::Range(1, 256))
      ->needs(network);
  app.add_flag("--skip-bad", skip_bad, "leave images that cannot be read out instead of stopping")
      ->needs(network);
}

}  // namespace rk
