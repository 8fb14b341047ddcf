#include "retrieval/files/labels.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/number_in.h"
#include "engine/base/printable.h"
#include "engine/base/shape.h"
#include "engine/base/text_of.h"
#include "retrieval/files/embeddings_file.h"
#include "retrieval/files/mapped_file.h"
#include "retrieval/files/text_column.h"
#include "weights/hdf5/contents.h"
#include "weights/hdf5/file.h"
#include "weights/tensor_files/file_kind.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace rk {
namespace {

constexpr int kDoubleDigits = 53;

// A floating-point type of d binary digits tells all integers below 2^d apart.
int digits_of(ElementType type) {
  switch (type) {
    case ElementType::kF16: return 11;
    case ElementType::kBf16: return 8;
    case ElementType::kF32: return 24;
    default: return kDoubleDigits;
  }
}

// Throws InputError if the number of values differs from the number of rows.
void check_count(std::int64_t count, std::int64_t rows, std::int64_t dim, const std::string& from,
                 const std::string& rows_of, const std::string& noun) {
  if (count == rows) return;
  if (count == dim) {
    fail<InputError>(
        "{}: is [{}, {}] and {} has {}: the rows lie across; store them "
        "transposed (numpy: .T)",
        rows_of, rows, dim, from, counted(count, noun));
  }
  fail<InputError>("{}: {} for the {} of {}; give one {} a row", from, counted(count, noun),
                   counted(rows, "row"), rows_of, noun);
}

// Labels from name(i) of each row. Takes one name at a time: all together may be far larger than
// the file.
template <class F> Labels of_names(std::int64_t rows, F&& name) {
  Labels out;
  out.what = "names";
  out.names = true;
  std::unordered_map<std::string, std::int64_t> known;
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto [found, fresh] =
        known.emplace(name(i), static_cast<std::int64_t>(out.classes.size()));
    if (fresh) out.classes.push_back(found->first);
    out.labels.push_back(found->second);
  }
  return out;
}

// Converts element `at` of `from`, stored with `digits`; throws InputError if it is not a whole
// number, or may be another one rounded.
std::int64_t whole(double value, int digits, std::size_t at, const std::string& from) {
  if (std::abs(value) >= std::ldexp(1.0, digits)) {
    fail<InputError>(
        "{}: element {} is {}, which reaches 2^{}, from where floating-point numbers of its type "
        "no longer tell whole numbers apart; give integers, or names if they are labels",
        from, at, value, digits);
  }
  if (std::isnan(value) || value != std::floor(value)) {
    fail<InputError>(
        "{}: element {} is {}, no whole number; give integers, or names if they are labels", from,
        at, value);
  }
  return static_cast<std::int64_t>(value);
}

std::vector<std::int64_t> real_numbers(const StoredArray& array, const std::string& from) {
  std::vector<float> space;
  std::vector<std::int64_t> out;
  const int digits = digits_of(array.tensor.type);
  const auto add = [&](double value) { out.push_back(whole(value, digits, out.size(), from)); };
  if (array.tensor.type == ElementType::kF64) {
    const std::vector<std::byte> bytes = contiguous_bytes(array.tensor);
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(double)) {
      double value = 0;
      std::memcpy(&value, bytes.data() + at, sizeof(value));
      add(value);
    }
  } else {
    for (const float value : float_values(array.tensor, space)) add(value);
  }
  return out;
}

Labels of_column(TextColumn column) {
  Labels out;
  out.labels = std::move(column.rows);
  std::vector<std::int64_t> numbers;
  for (const std::string& value : column.values) {
    const std::optional<std::int64_t> number = number_in<std::int64_t>(value);
    // 007 and 7 are two labels: a number is only what has no other way of being written.
    if (!number || std::to_string(*number) != value) break;
    numbers.push_back(*number);
  }
  out.names = numbers.size() < column.values.size();
  out.what = out.names ? "names" : "whole numbers";
  if (!column.name.empty()) {
    out.what = fmt::format("column {}, {}", printable(column.name), out.what);
  }
  if (out.names) {
    out.classes = std::move(column.values);
  } else {
    for (std::int64_t& label : out.labels) label = numbers[static_cast<std::size_t>(label)];
  }
  return out;
}

std::string labels_in(const Hdf5Reader&) { return "/labels"; }

std::string cameras_or_usual(const Hdf5Reader& file) {
  std::string found = cameras_in(file);
  return found.empty() ? "/cameras" : found;
}

Labels of_hdf5(const FileAndName& from, std::int64_t rows, std::int64_t dim,
               const std::string& rows_of, const RowValue& value) {
  const Hdf5Reader file(from.file);
  const std::string name = from.name.empty() ? value.data_set(file)
                                             : (from.name.starts_with('/') ? "" : "/") + from.name;
  if (!file.has(name)) {
    fail<InputError>("{}: no data set {}; {}", file.name(), name, what_it_holds(file));
  }
  const Hdf5Reader::Info info = file.info(name);
  const std::string where = fmt::format("{}: {}", file.name(), name);
  if (std::ranges::count_if(info.dims, [](std::int64_t side) { return side > 1; }) > 1) {
    fail<InputError>("{}: is {}, not one {} a row; give [{}]", where, shape_text(info.dims),
                     value.noun, rows);
  }
  check_count(info.elements(), rows, dim, where, rows_of, value.noun);
  if (info.kind == Hdf5Reader::Kind::kText) {
    const std::vector<std::string> names = file.read_text(name);
    return of_names(rows, [&](std::int64_t i) { return names[static_cast<std::size_t>(i)]; });
  }
  Labels out;
  const bool real = info.kind == Hdf5Reader::Kind::kFloat;
  out.what = real ? "floating-point numbers, all whole" : "integers";
  out.labels = whole_numbers(file, name);
  if (name == "/labels") out.classes = read_classes(file, "", out.labels);
  return out;
}

Labels of_array(const StoredArray& array, std::int64_t rows, std::int64_t dim,
                const std::string& from, const std::string& rows_of, const std::string& noun) {
  std::int64_t longest = 1;
  for (const std::int64_t side : array.dims()) longest = std::max(longest, side);
  if (array.tensor.elements() != longest || array.dims().empty()) {
    fail<InputError>("{}: is {}, not one {} a row; give [{}]", from, text_of(array), noun, rows);
  }
  check_count(longest, rows, dim, from, rows_of, noun);
  Labels out;
  if (array.text) {
    try {
      out = of_names(rows, [&](std::int64_t i) { return text_at(array, i); });
    } catch (const InputError& error) {
      fail<InputError>("{}: {}", from, error.what());
    }
  } else if (array.integer() || array.real()) {
    out.labels = whole_numbers(array, from);
    out.what = array.dtype + (array.real() ? ", all whole" : "");
  } else {
    fail<InputError>("{}: is {}; give integers or names", from, text_of(array));
  }
  return out;
}

// Reads a value for each row from FILE or FILE:NAME.
Labels read_values(const std::string& from, std::int64_t rows, std::int64_t dim,
                   const std::string& rows_of, const RowValue& value) {
  const FileAndName place = file_and_name(from);
  const auto mapped = std::make_shared<const MappedFile>(place.file);
  const std::string_view text = text_of(mapped->bytes());
  Labels out;
  if (is_hdf5(text)) {
    out = of_hdf5(place, rows, dim, rows_of, value);
  } else if (holds_arrays(mapped->bytes())) {
    const ArrayFile file = open_arrays(mapped, place.file);
    const StoredArray* array = nullptr;
    const std::vector<const StoredArray*> all = file.all();
    if (!place.name.empty()) {
      array = &file.named(place.name);
    } else {
      array = all.size() == 1 ? all.front() : file.find(value.usual);
    }
    if (array == nullptr) {
      fail<InputError>("{}: none of its arrays is called {}; {}; say which, as FILE:NAME",
                       printable(place.file), value.usual.front(), file.contents());
    }
    out = of_array(*array, rows, dim, printable(from), rows_of, value.noun);
  } else {
    if (is_pickle(text)) open_arrays(mapped, place.file);  // throws: pickles are refused
    if (const std::string other = other_kind(text); !other.empty()) {
      fail<InputError>("{}: {}", printable(place.file), other);
    }
    TextColumn column = read_text_column(mapped->bytes(), place.name, value, rows, place.file);
    if (column.more) {
      fail<InputError>("{}: more {}s than the {} of {}; give one {} a row", printable(from),
                       value.noun, counted(rows, "row"), rows_of, value.noun);
    }
    check_count(static_cast<std::int64_t>(column.rows.size()), rows, dim, printable(from), rows_of,
                value.noun);
    out = of_column(std::move(column));
  }
  check_mapped_files();
  return out;
}

[[noreturn]] void refuse_names_of_cameras(const std::string& from) {
  fail<InputError>(
      "{}: holds names; number them, equal ones alike in all files (numpy: np.unique(names, "
      "return_inverse=True)[1])",
      from);
}

}  // namespace

std::vector<std::int64_t> whole_numbers(const StoredArray& array, const std::string& from) {
  return array.integer() ? integers_of(array, from) : real_numbers(array, from);
}

std::vector<std::int64_t> whole_numbers(const Hdf5Reader& file, const std::string& name) {
  const Hdf5Reader::Info info = file.info(name);
  if (info.kind != Hdf5Reader::Kind::kFloat) return file.read<std::int64_t>(name);
  const int digits = std::min(info.digits, kDoubleDigits);
  const std::string from = fmt::format("{}: {}", file.name(), name);
  std::vector<std::int64_t> out;
  for (const double value : file.read<double>(name)) {
    out.push_back(whole(value, digits, out.size(), from));
  }
  return out;
}

std::vector<std::int64_t> whole_number_of_each(const StoredArray& array, std::int64_t rows,
                                               const std::string& from) {
  if (array.text) refuse_names_of_cameras(from);
  const bool flat = std::ranges::count_if(array.dims(), [](auto side) { return side > 1; }) <= 1;
  if (!(array.integer() || array.real()) || !flat || array.tensor.elements() != rows) {
    fail<InputError>("{}: is {}, not one whole number for each of the {}; mend or remove it", from,
                     text_of(array), counted(rows, "row"));
  }
  return whole_numbers(array, from);
}

void refuse_named_labels(const Hdf5Reader& file, const std::string& labels_flag) {
  if (!file.has("/labels") || file.info("/labels").kind != Hdf5Reader::Kind::kText) return;
  fail<InputError>("{}: /labels does not hold integers but names; with {} {} they are taken",
                   file.name(), labels_flag, file.name());
}

const RowValue& label_value() {
  static const std::vector<std::string> names = {"labels",  "label", "targets",   "target",
                                                 "classes", "class", "class_ids", "class_id",
                                                 "y",       "arr_1"};
  static const RowValue value = {"label", names, labels_in};
  return value;
}

const RowValue& camera_value() {
  static const RowValue value = {"camera", usual_camera_names(), cameras_or_usual};
  return value;
}

Labels labels_of(const StoredArray& array, std::int64_t rows, std::int64_t dim,
                 const std::string& from, const std::string& rows_of) {
  return of_array(array, rows, dim, from, rows_of, label_value().noun);
}

Labels read_labels(const std::string& from, std::int64_t rows, std::int64_t dim,
                   const std::string& rows_of) {
  return read_values(from, rows, dim, rows_of, label_value());
}

Cameras read_cameras(const std::string& from, std::int64_t rows, std::int64_t dim,
                     const std::string& rows_of) {
  Labels read = read_values(from, rows, dim, rows_of, camera_value());
  if (read.names) refuse_names_of_cameras(printable(from));
  return {std::move(read.labels), std::move(read.what)};
}

}  // namespace rk
