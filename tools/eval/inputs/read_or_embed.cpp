#include "tools/eval/inputs/read_or_embed.h"

#include "tools/eval/inputs/embed_data.h"

namespace rk {

EvaluatedRows read_or_embed(const Context& context, const RowFiles& files,
                            const NetworkOptions& network, const CommonOptions& common) {
  EvaluatedRows rows;
  const auto read_gallery_file = [&] {
    if (!files.gallery.empty()) rows.gallery = read_gallery(files);
  };
  if (network.checkpoint.empty()) {
    rows.queries = read_queries(files);
    read_gallery_file();
    return rows;
  }
  // Embedding the pictures takes long: the gallery is read before, so that it is refused early.
  read_gallery_file();
  if (!network.gallery_split.empty()) {
    NetworkOptions of_gallery = network;
    of_gallery.split = network.gallery_split;
    rows.gallery = embed_data(context, of_gallery, nullptr, common);
  }
  rows.queries = embed_data(context, network, rows.gallery ? &*rows.gallery : nullptr, common);
  return rows;
}

}  // namespace rk
