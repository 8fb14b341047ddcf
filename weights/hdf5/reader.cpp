#include "engine/base/error.h"
#include "engine/base/packed_values.h"
#include "engine/base/shape.h"
#include "engine/system/parser_process.h"
#include "weights/hdf5/boxes.h"
#include "weights/hdf5/element_count.h"
#include "weights/hdf5/file.h"
#include "weights/hdf5/file_memory.h"
#include "weights/hdf5/questions.h"
#include "weights/hdf5/server.h"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>

namespace rk {
namespace {

// The least memory limit for the library, for one piece at a time and its knowledge of the file.
constexpr std::uint64_t kLeastForParser = std::uint64_t{96} << 20;
constexpr std::size_t kMaxQuestionBytes = std::size_t{256} << 10;

// A valid file of the slowest kind (16-bit floats, which the library converts one by one) takes an
// eighth of this on a present-day machine. `bytes`: the file size, for its structure, plus the
// bytes that are read.
std::uint64_t cpu_seconds(std::uint64_t bytes) { return 2 + (bytes >> 23); }

constexpr std::uint64_t kMostDigits = 64;  // of elements of at most 8 bytes

// Starts the library in a separate process, for a file of `bytes` from which `room` bytes may be
// read.
template <class... Args>
std::unique_ptr<Parser> library(const std::string& name, std::uint64_t bytes, std::uint64_t room,
                                Args&&... args) {
  const auto server = std::make_shared<Hdf5Server>(std::forward<Args>(args)...);
  return std::make_unique<ParserProcess>(
      printable(name), "the HDF5 library",
      ParserLimits{memory_for_file(bytes), cpu_seconds(bytes + room)}, 60 + (bytes >> 22),
      kHdf5SlotBytes,
      [server](std::span<std::byte> slot, std::size_t asked) { return (*server)(slot, asked); });
}

}  // namespace

std::int64_t Hdf5Reader::Info::elements() const { return element_count(dims); }

struct Hdf5Reader::State {
  State(std::string file_name, std::uint64_t bytes, std::uint64_t room,
        std::unique_ptr<Parser> answering)
      : name(std::move(file_name)), file_bytes(bytes), budget(room), parser(std::move(answering)) {
    read_objects();
  }

  struct Shape {
    Info info;
    std::vector<std::int64_t> piece;
    std::string unread;  // why, and then there is no other content; empty if it is read
  };

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail<InputError>("{}: {}", printable(name), fmt::format(format, std::forward<Args>(args)...));
  }

  [[noreturn]] void distrust() const {
    refuse("the HDF5 library gives an answer that makes no sense; the file is malformed");
  }

  void ask(const std::function<void(PackedWriter&)>& put) {
    const std::span<std::byte> question(question_bytes.get(), kMaxQuestionBytes);
    PackedWriter out(question);
    try {
      put(out);
    } catch (const std::length_error&) {
      refuse("the path of an object takes more than {} KiB; the file is malformed",
             kMaxQuestionBytes >> 10);
    }
    parser->ask(question.first(out.bytes()),
                {std::max(kLeastForParser, memory_for_file(file_bytes) -
                                               std::min(memory_for_file(file_bytes), held)),
                 cpu_seconds(file_bytes + held)});
  }

  // Copies the answer first, since the child could still change it after it was checked.
  template <class Use> auto answer(Use&& use) {
    const std::span<const std::byte> shared = parser->answer();
    const std::vector<std::byte> bytes(shared.begin(), shared.end());
    PackedReader in(bytes);
    try {
      return use(in);
    } catch (const std::out_of_range&) {
      distrust();
    }
  }

  void read_objects() {
    ask([](PackedWriter& out) { out.number(static_cast<std::uint64_t>(Hdf5Question::kOpen)); });
    identity = answer([](PackedReader& in) {
      FileIdentity id;
      for (std::uint64_t* each : {&id.device, &id.inode, &id.bytes, &id.seconds, &id.nanoseconds}) {
        *each = in.number();
      }
      return id;
    });
    std::uint64_t path_bytes = 0;
    for (std::uint64_t count = 1; objects.size() < count;) {
      const std::size_t before = objects.size();
      ask([&](PackedWriter& out) {
        out.number(static_cast<std::uint64_t>(Hdf5Question::kObjects));
        out.number(before);
      });
      answer([&](PackedReader& in) {
        count = in.number();
        while (!in.at_end()) {
          const std::string path(in.text());
          path_bytes += path.size();
          if (path_bytes > kMaxPathBytes) distrust();
          objects[path] = in.number() != 0;
        }
      });
      if (objects.size() == before) distrust();
    }
  }

  void ask_about(Hdf5Question question, const std::string& path) {
    ask([&](PackedWriter& out) {
      out.number(static_cast<std::uint64_t>(question));
      out.text(path);
    });
  }

  // Asked only once per data set: reading uses exactly the shape that the caller saw, even if a
  // later answer would differ.
  const Shape& any_shape(const std::string& path) {
    const auto known = shapes.find(path);
    return known != shapes.end() ? known->second
                                 : shapes.emplace(path, ask_shape(path)).first->second;
  }

  // Throws InputError if the data set is not read.
  const Shape& shape(const std::string& path) {
    const Shape& known = any_shape(path);
    if (!known.unread.empty()) refuse("{}", known.unread);
    return known;
  }

  Shape ask_shape(const std::string& path) {
    ask_about(Hdf5Question::kInfo, path);
    return answer([&](PackedReader& in) {
      Shape out;
      const std::uint64_t kind = in.number();
      if (kind == kHdf5Unread) {
        out.unread = in.text();
        if (out.unread.empty()) distrust();
        return out;
      }
      const std::uint64_t digits = in.number(), rank = in.number();
      if (kind > static_cast<std::uint64_t>(Kind::kText) || digits > kMostDigits ||
          rank > kHdf5MaxRank) {
        distrust();
      }
      out.info.kind = static_cast<Kind>(kind);
      out.info.digits = static_cast<int>(digits);
      std::uint64_t product = 1;
      for (std::uint64_t i = 0; i < rank; ++i) {
        const std::uint64_t side = in.number();
        if (side > std::numeric_limits<std::int32_t>::max()) distrust();
        out.info.dims.push_back(static_cast<std::int64_t>(side));
      }
      // The size limit applies unless a side is 0; sides are below 2^31 and the product is checked
      // at every step, so it cannot overflow.
      const bool empty = std::count(out.info.dims.begin(), out.info.dims.end(), 0) > 0;
      for (const std::int64_t side : out.info.dims) {
        product *= empty ? 0 : static_cast<std::uint64_t>(side);
        if (product > most_dataset_bytes(file_bytes)) distrust();
      }
      for (const std::int64_t side : out.info.dims) {
        const std::uint64_t piece = in.number();
        if (piece > static_cast<std::uint64_t>(side) || (piece == 0 && side > 0)) distrust();
        out.piece.push_back(static_cast<std::int64_t>(piece));
      }
      return out;
    });
  }

  // Counts the bytes held of one data set, in the type that it is read as.
  void hold(const std::string& path, std::uint64_t bytes) {
    std::uint64_t& before = held_of[path];
    if (bytes <= before) return;
    held += bytes - before;
    before = bytes;
    if (held <= budget) return;
    refuse(
        "{} takes {} MiB as it is read, {} MiB with what was read before, and {} MiB are the limit "
        "for a file of {} bytes; split it",
        printable(path), bytes >> 20, held >> 20, budget >> 20, file_bytes);
  }

  // Checked before the data set is counted or allocated, so that a refusal takes no memory.
  template <class T> void require_kind(const std::string& path, const Info& info) const {
    if (info.kind == Kind::kText) {
      refuse("{} holds text where numbers are expected", printable(path));
    }
    if (std::is_integral_v<T> && info.kind == Kind::kFloat) {
      refuse("{} holds floating-point numbers where integers are expected; convert it",
             printable(path));
    }
  }

  // Rows [first, end) of the first axis; a scalar counts as one row.
  struct Rows {
    std::int64_t first = 0, end = 1;
  };

  static Rows all_rows(const Shape& shape) {
    return {0, shape.info.dims.empty() ? 1 : shape.info.dims[0]};
  }

  // Rows from `first` on of a data set that is not empty: about as many as one answer holds, chosen
  // so that no piece is unpacked twice.
  template <class T> static Rows some_rows(const Shape& shape, std::int64_t first) {
    constexpr auto kBytes = static_cast<std::int64_t>(kHdf5SlotBytes);
    const std::vector<std::int64_t>&dims = shape.info.dims, &piece = shape.piece;
    if (dims.empty()) return {};
    const std::int64_t row_bytes =
        shape.info.elements() / dims[0] * static_cast<std::int64_t>(sizeof(T));
    std::int64_t end = first + std::max<std::int64_t>(1, kBytes / row_bytes);
    const std::int64_t piece_end = (first / piece[0] + 1) * piece[0];
    if (first % piece[0] == 0 && end >= piece_end) {
      end -= end % piece[0];
    } else if (std::equal(dims.begin() + 1, dims.end(), piece.begin() + 1)) {
      end = std::min(end, piece_end);
    } else {
      end = piece_end;  // a row has several pieces, and the parser keeps one at a time
    }
    return {first, std::min(end, dims[0])};
  }

  template <class T>
  void read_numbers(const std::string& path, const Shape& shape, Rows rows, T* out) {
    if (shape.info.elements() == 0) return;
    std::vector<std::int64_t> dims = shape.info.dims, piece = shape.piece;
    if (!dims.empty()) {
      dims[0] = rows.end - rows.first;
      piece[0] = std::min(piece[0], dims[0]);
    }
    Hdf5BoxBatches batches(dims, piece, kHdf5SlotBytes / sizeof(T));
    std::deque<std::vector<Hdf5Box>> asked;
    const auto ask_next = [&] {
      std::vector<Hdf5Box> boxes = batches.next();
      if (boxes.empty()) return;
      ask_numbers<T>(path, boxes, rows.first);
      asked.push_back(std::move(boxes));
    };
    try {
      // This process empties one slot while the parser fills the others.
      for (std::size_t slot = 0; slot < Parser::kSlots; ++slot) ask_next();
      while (!asked.empty()) {
        const std::vector<Hdf5Box> boxes = std::move(asked.front());
        asked.pop_front();
        const std::span<const std::byte> values = parser->answer();
        std::size_t at = 0;
        for (const Hdf5Box& box : boxes) {
          const std::size_t bytes = elements_of(box) * sizeof(T);
          if (bytes > values.size() - at) distrust();
          scatter(box, dims, values.data() + at, out);
          at += bytes;
        }
        if (at != values.size()) distrust();
        ask_next();
      }
    } catch (const InputError&) {
      // So that later answers match their questions.
      for (std::size_t i = 0; i < asked.size(); ++i) forget_answer();
      throw;
    }
  }

  // Asks for the numbers in `boxes`, whose first row is the data set's row `first`.
  template <class T>
  void ask_numbers(const std::string& path, const std::vector<Hdf5Box>& boxes, std::int64_t first) {
    ask([&](PackedWriter& question) {
      question.number(static_cast<std::uint64_t>(Hdf5Question::kNumbers));
      question.text(path);
      question.number(static_cast<std::uint64_t>(hdf5_type<T>()));
      for (const Hdf5Box& box : boxes) {
        for (std::size_t axis = 0; axis < box.offset.size(); ++axis) {
          const std::int64_t before = axis == 0 ? first : 0;
          question.number(static_cast<std::uint64_t>(before + box.offset[axis]));
        }
        for (const std::int64_t side : box.sides) {
          question.number(static_cast<std::uint64_t>(side));
        }
      }
    });
  }

  void forget_answer() {
    try {
      parser->answer();
    } catch (const InputError&) {
      // Ignored: the first refusal is the one to report.
    }
  }

  // Asks for an attribute and returns what `use` makes of the answer; nullopt if there is none.
  template <class Use>
  auto attribute(Hdf5Question question, const std::string& object, const std::string& attribute,
                 Use&& use) {
    ask([&](PackedWriter& out) {
      out.number(static_cast<std::uint64_t>(question));
      out.text(object);
      out.text(attribute);
    });
    return answer([&](PackedReader& in) -> std::optional<decltype(use(in, 1))> {
      const std::uint64_t count = in.number();
      if (count == 0) return std::nullopt;
      return use(in, count);
    });
  }

  std::string name;
  std::uint64_t file_bytes;
  std::uint64_t budget;                          // the most bytes that may be read
  std::uint64_t held = 0;                        // of the budget
  std::map<std::string, std::uint64_t> held_of;  // by data set
  FileIdentity identity;
  std::map<std::string, bool> objects;  // full path -> is it a data set
  std::map<std::string, Shape> shapes;  // by data set
  const std::unique_ptr<std::byte[]> question_bytes =
      std::make_unique_for_overwrite<std::byte[]>(kMaxQuestionBytes);
  std::unique_ptr<Parser> parser;
};

Hdf5Reader::Hdf5Reader(const std::string& path) {
  const auto refuse = [&](const std::string& what) {
    fail<InputError>("{}: {}", printable(path), what);
  };
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    const int error = errno;
    refuse(fmt::format("cannot be opened ({}); check the path", std::strerror(error)));
  }
  if (S_ISDIR(status.st_mode)) refuse("is a directory; give an HDF5 file");
  if (!S_ISREG(status.st_mode)) refuse("is not a regular file; give an HDF5 file");
  if (status.st_size == 0) refuse("is empty; copy or make it again");
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  const std::uint64_t room = memory_for_file(bytes);
  state_ = std::make_unique<State>(path, bytes, room, library(path, bytes, room, path));
}

Hdf5Reader::Hdf5Reader(std::span<const std::byte> image, const std::string& name)
    : Hdf5Reader(image, name, memory_for_file(image.size()) - image.size()) {}

Hdf5Reader::Hdf5Reader(std::span<const std::byte> image, const std::string& name,
                       std::uint64_t room) {
  if (image.empty()) fail<InputError>("{}: is empty; copy or make it again", printable(name));
  state_ = std::make_unique<State>(name, image.size(), room,
                                   library(name, image.size(), room, image, name));
}

Hdf5Reader::Hdf5Reader(const std::string& name, std::unique_ptr<Parser> parser)
    : state_(std::make_unique<State>(name, 1, memory_for_file(1), std::move(parser))) {}

Hdf5Reader::~Hdf5Reader() = default;
Hdf5Reader::Hdf5Reader(Hdf5Reader&&) noexcept = default;
Hdf5Reader& Hdf5Reader::operator=(Hdf5Reader&&) noexcept = default;

const std::string& Hdf5Reader::name() const { return state_->name; }
const FileIdentity& Hdf5Reader::identity() const { return state_->identity; }

bool Hdf5Reader::has(const std::string& object) const {
  return state_->objects.contains(hdf5_path(object));
}

std::vector<std::string> Hdf5Reader::datasets(const std::string& group) const {
  const std::string root = hdf5_path(group);
  const std::string prefix = root == "/" ? root : root + "/";
  std::vector<std::string> out;
  for (const auto& [path, is_dataset] : state_->objects) {
    if (is_dataset && path.starts_with(prefix)) out.push_back(path);
  }
  return out;
}

std::vector<std::string> Hdf5Reader::children(const std::string& group) const {
  const std::string root = hdf5_path(group);
  const std::string prefix = root == "/" ? root : root + "/";
  std::vector<std::string> out;
  for (const auto& [path, is_dataset] : state_->objects) {
    if (path.size() > prefix.size() && path.starts_with(prefix) &&
        path.find('/', prefix.size()) == std::string::npos) {
      out.push_back(path.substr(prefix.size()));
    }
  }
  return out;
}

Hdf5Reader::Info Hdf5Reader::info(const std::string& dataset) const {
  return state_->shape(hdf5_path(dataset)).info;
}

std::string Hdf5Reader::unread(const std::string& dataset) const {
  return state_->any_shape(hdf5_path(dataset)).unread;
}

template <class T> std::vector<T> Hdf5Reader::read(const std::string& dataset) const {
  const std::string path = hdf5_path(dataset);
  const State::Shape& shape = state_->shape(path);
  state_->require_kind<T>(path, shape.info);
  const auto count = static_cast<std::size_t>(shape.info.elements());
  state_->hold(path, count * sizeof(T));
  std::vector<T> values(count);
  state_->read_numbers(path, shape, State::all_rows(shape), values.data());
  return values;
}

template <class T> void Hdf5Reader::visit(const std::string& dataset, const Use<T>& use) const {
  const std::string path = hdf5_path(dataset);
  const State::Shape& shape = state_->shape(path);
  state_->require_kind<T>(path, shape.info);
  const std::int64_t elements = shape.info.elements();
  if (elements == 0) return;
  state_->hold(path, static_cast<std::uint64_t>(elements) * sizeof(T));
  const std::int64_t all = State::all_rows(shape).end;
  std::vector<T> values;
  for (State::Rows rows{0, 0}; rows.end < all;) {
    rows = State::some_rows<T>(shape, rows.end);
    values.resize(static_cast<std::size_t>((rows.end - rows.first) * (elements / all)));
    state_->read_numbers(path, shape, rows, values.data());
    use(values);
  }
}

template <class T>
void Hdf5Reader::read_into(const std::string& dataset, const std::vector<std::int64_t>& dims,
                           T* out) const {
  const std::string path = hdf5_path(dataset);
  const State::Shape& shape = state_->shape(path);
  if (shape.info.dims != dims) {
    state_->refuse("{} has shape {} where {} is expected", printable(path),
                   shape_text(shape.info.dims), shape_text(dims));
  }
  state_->require_kind<T>(path, shape.info);
  state_->hold(path, static_cast<std::uint64_t>(shape.info.elements()) * sizeof(T));
  state_->read_numbers(path, shape, State::all_rows(shape), out);
}

std::vector<std::string> Hdf5Reader::read_text(const std::string& dataset) const {
  const std::string path = hdf5_path(dataset);
  const Info& info = state_->shape(path).info;
  if (info.kind != Kind::kText) {
    state_->refuse("{} holds numbers where text is expected", printable(path));
  }
  const auto count = static_cast<std::size_t>(info.elements());
  std::uint64_t bytes = count * sizeof(std::string);
  state_->hold(path, bytes);
  std::vector<std::string> out;
  out.reserve(count);
  std::string text;  // the text that is not yet complete
  while (out.size() < count) {
    const std::size_t texts = out.size(), part = text.size();
    state_->ask([&](PackedWriter& question) {
      question.number(static_cast<std::uint64_t>(Hdf5Question::kTexts));
      question.text(path);
      question.number(texts);
      question.number(part);
    });
    state_->answer([&](PackedReader& in) {
      while (!in.at_end() && out.size() < count) {
        const bool ends = in.number() != 0;
        const std::string_view more = in.text();
        state_->hold(path, bytes += more.size());
        text += more;
        if (ends) out.push_back(std::exchange(text, {}));
      }
    });
    if (out.size() == texts && text.size() == part) state_->distrust();
  }
  return out;
}

std::optional<std::string> Hdf5Reader::text_attribute(const std::string& object,
                                                      const std::string& name) const {
  return state_->attribute(Hdf5Question::kTextAttribute, object, name,
                           [](PackedReader& in, std::uint64_t) { return std::string(in.text()); });
}

std::optional<std::int64_t> Hdf5Reader::integer_attribute(const std::string& object,
                                                          const std::string& name) const {
  return state_->attribute(
      Hdf5Question::kIntegerAttribute, object, name,
      [](PackedReader& in, std::uint64_t) { return static_cast<std::int64_t>(in.number()); });
}

std::optional<std::vector<double>> Hdf5Reader::number_attribute(const std::string& object,
                                                                const std::string& name) const {
  return state_->attribute(Hdf5Question::kNumberAttribute, object, name,
                           [](PackedReader& in, std::uint64_t count) {
                             std::vector<double> values;
                             for (std::uint64_t i = 0; i < count; ++i) {
                               values.push_back(std::bit_cast<double>(in.number()));
                             }
                             return values;
                           });
}

#define RK_INSTANTIATE(T)                                                                       \
  template std::vector<T> Hdf5Reader::read(const std::string&) const;                           \
  template void Hdf5Reader::read_into(const std::string&, const std::vector<std::int64_t>&, T*) \
      const;                                                                                    \
  template void Hdf5Reader::visit(const std::string&, const Use<T>&) const;
RK_INSTANTIATE(float)
RK_INSTANTIATE(double)
RK_INSTANTIATE(std::int64_t)
RK_INSTANTIATE(std::uint8_t)
#undef RK_INSTANTIATE

}  // namespace rk
