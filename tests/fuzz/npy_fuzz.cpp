// libFuzzer target: any bytes are arrays, a column of labels, or an InputError; what is read lies
// within the bytes and has its declared size.
#include "engine/base/error.h"
#include "retrieval/files/array_file.h"
#include "retrieval/files/labels.h"
#include "retrieval/files/text_column.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

namespace {

// Reads every array as rows and as labels, wherever that is allowed.
void read_arrays(std::span<const std::byte> bytes) {
  if (!rk::holds_arrays(bytes)) return;
  // A copy of exactly this size, so that a sanitizer sees a read beyond its end.
  const auto own = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
  const rk::ArrayFile file(*own, own, "fuzz");
  for (const rk::StoredArray* array : file.all()) {
    if (file.contents().find('\n') != std::string::npos) std::abort();
    if (array->real() && array->dims().size() == 2 && array->tensor.elements() > 0) {
      const std::vector<float> rows = rk::rows_as_float32(*array);
      if (static_cast<std::int64_t>(rows.size()) != array->tensor.elements()) std::abort();
    }
    try {
      const std::int64_t rows = array->dims().empty() ? 1 : array->dims()[0];
      const rk::Labels labels = rk::labels_of(*array, rows, 0, "fuzz", "fuzz");
      if (static_cast<std::int64_t>(labels.labels.size()) != rows) std::abort();
    } catch (const rk::InputError&) {
    }
  }
}

void read_table(std::span<const std::byte> bytes) {
  const rk::TextColumn column = rk::read_text_column(bytes, "", rk::label_value(), 100, "fuzz");
  for (const std::int64_t row : column.rows) {
    if (row < 0 || row >= static_cast<std::int64_t>(column.values.size())) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  for (const auto read : {read_arrays, read_table}) {
    try {
      read(bytes);
    } catch (const rk::InputError&) {
    }
  }
  return 0;
}
