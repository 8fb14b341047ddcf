#include "tools/eval/same_rows.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/base/printable.h"
#include "retrieval/files/embeddings_file.h"

#include <filesystem>
#include <string>

namespace rk {
namespace {

std::string file_name_of(const EmbeddingSet& set, std::int64_t row) {
  return std::filesystem::path(set.paths[at(row)]).filename().string();
}

void check_same_side(const DescribedRows& first, const DescribedRows& second) {
  const EmbeddingSet &a = first.set, &b = second.set;
  constexpr const char* kAdvice = "give embeddings of the same pictures, in the same order";
  if (a.count() != b.count()) {
    fail<InputError>("{}: {}, but {} has {}; {}", second.name, counted(b.count(), "row"),
                     first.name, a.count(), kAdvice);
  }
  check_same_labels(a, first.labels_in, b, second.labels_in);
  check_same_cameras(a, first.name, b, second.name);
  const auto refuse = [&](std::int64_t row, const char* what, const std::string& of_a,
                          const std::string& of_b) {
    fail<InputError>("{}: row {} is of {} {}, in {} of {}; {}", second.name, row, what,
                     in_quotes(of_b), first.name, in_quotes(of_a), kAdvice);
  };
  for (std::int64_t i = 0; i < a.count(); ++i) {
    const std::string of_a = name_or_number(a.classes, a.labels[at(i)]);
    const std::string of_b = name_or_number(b.classes, b.labels[at(i)]);
    if (of_a != of_b) refuse(i, "class", of_a, of_b);
    if (!a.cameras.empty() && a.cameras[at(i)] != b.cameras[at(i)]) {
      refuse(i, "camera", std::to_string(a.cameras[at(i)]), std::to_string(b.cameras[at(i)]));
    }
    if (a.paths.empty() || b.paths.empty()) continue;
    if (file_name_of(a, i) != file_name_of(b, i)) {
      refuse(i, "the picture", file_name_of(a, i), file_name_of(b, i));
    }
  }
}

}  // namespace

void check_same_rows(const EvaluatedRows& first, const EvaluatedRows& second) {
  check_same_side(first.queries, second.queries);
  if (first.gallery && second.gallery) check_same_side(*first.gallery, *second.gallery);
}

}  // namespace rk
