// What the cards of a page say about a row, and the picture that was asked for.
#pragma once

#include "retrieval/passes/embedding_set.h"
#include "retrieval/report/thumbnails.h"

#include <cstdint>
#include <string>

namespace rk {

// "tabby", or "label 7" if classes have no names.
std::string class_name(const EmbeddingSet& set, std::int64_t label);

// The path of a row, or "row 7" if there are no paths.
std::string path_of(const EmbeddingSet& set, std::int64_t row);
// The same without its folders.
std::string file_of(const EmbeddingSet& set, std::int64_t row);

// The first item of a card, as HTML. alternative: in place of the picture.
std::string query_item(Thumbnails& pictures, const EmbeddingSet& queries, std::int64_t query,
                       const std::string& alternative);

}  // namespace rk
