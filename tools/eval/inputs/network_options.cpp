#include "tools/eval/inputs/network_options.h"

#include "data/sources/open_dataset.h"
#include "engine/device/precision.h"
#include "weights/architectures/registry.h"

namespace rk {

void NetworkOptions::add_to(Flags& flags) {
  const Flag network = flags
                           .add("--checkpoint,--weights", checkpoint,
                                "embed --data with this network: RUN/best.h5, or weights in "
                                "any file that convert reads, whose pooled features are "
                                "then the embeddings")
                           .type_name("FILE");
  flags
      .add("--arch", arch,
           "architecture of weights that Rankine did not write; empty: inferred from their shapes")
      .check(one_of(network_names()))
      .needs(network);
  flags.add("--data", data, "images for --checkpoint, KIND:PATH[,key=value]\n" + dataset_help())
      .type_name("SPEC");
  flags.add("--split", split, "which of its splits").check(shown_values(split_names()));
  flags
      .add("--gallery-split", gallery_split,
           "search in this split of --data, embedded by the same network, instead of among the "
           "pictures themselves")
      .check(shown_values(split_names()));
  flags
      .add("--save-embeddings", save,
           "also write the embeddings to this file, from which --embeddings, --gallery and "
           "--index read them")
      .check(file_name())
      .type_name("FILE");
  flags.add("--batch", batch, "images at a time").check(in_range(1, 1 << 16));
  flags
      .add("--workers", workers,
           "threads that read and prepare images; 0: one for each processor, at most 32")
      .check(in_range(0, 256));
  flags
      .add("--precision", precision,
           "what the network computes in on a GPU: fp32, tf32, fp16 or bf16")
      .check(one_of(precision_names()));
  flags.add_switch(
      "--skip-bad", skip_bad,
      "leave images that cannot be read out instead of stopping, except where the system "
      "fails (no permission, a failing disk)");
}

}  // namespace rk
