// HDF5 in and out, defensively: what Rankine reads and writes goes through these two classes.
//
// A reader has the file parsed in a process of its own (engine/system/parser_process.h), for as
// long as it lives: the library does not stand malformed files, and a checksum tells who wrote one
// no better than its name does. Opening walks all of it and refuses, before anything is allocated:
// links other than hard ones, virtual or external storage, filters other than shuffle and deflate,
// data sets that claim more than 1 MiB and more than 1100 times what the file stores for them, or
// more than 1 GiB and than the file has, groups nested deeper than 16, paths of more than 64 MiB in
// all. Reading
// refuses chunks that inflate beyond their size, and more than memory_for_file() in all, each data
// set counted in the type that it is read as. Every refusal is an InputError
// "<file>: <what>; <what to do>", and so is a crash of the library, or 2 s of its time (and one for
// each 8 MiB of the file and of what is read). Plugins are never loaded.
// Numbers are converted by the library (float64 to float32 and so on), but a floating-point data
// set is never read as integers, nor text as numbers, and an integer that does not fit is an error.
// Writing builds the whole file in memory; weights/atomic_file.h puts it on disk.
//
// The HDF5 library is not thread-safe: these classes are for one thread at a time, whichever the
// file, and a reader must not outlive the thread that made it.
#pragma once

#include "engine/system/file_identity.h"
#include "engine/system/parser.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rk {

class Hdf5Reader {
 public:
  enum class Kind { kFloat, kInteger, kText };
  struct Info {
    Kind kind;
    std::vector<std::int64_t> dims;  // empty: a scalar
    std::int64_t elements() const;
  };

  explicit Hdf5Reader(const std::string& path);
  // The same over a file that is already in memory; `name` appears in messages.
  Hdf5Reader(std::span<const std::byte> image, const std::string& name);
  // `room`: how many bytes may be read of it in all, where it lies in memory beside other things.
  Hdf5Reader(std::span<const std::byte> image, const std::string& name, std::uint64_t room);
  // Over any parser that answers weights/hdf5/questions.h, for tests of what comes of an answer.
  Hdf5Reader(const std::string& name, std::unique_ptr<Parser> parser);
  ~Hdf5Reader();
  Hdf5Reader(Hdf5Reader&&) noexcept;
  Hdf5Reader& operator=(Hdf5Reader&&) noexcept;

  const std::string& name() const;            // for messages
  const FileIdentity& identity() const;       // of the file that was opened; zeros of an image
  bool has(const std::string& object) const;  // "/weights/conv1.weight"
  std::vector<std::string> datasets(
      const std::string& group) const;  // full paths, recursive, sorted
  std::vector<std::string> children(
      const std::string& group) const;  // names one level below, sorted
  Info info(const std::string& dataset) const;

  // T is float, double, std::int64_t or std::uint8_t.
  template <class T> std::vector<T> read(const std::string& dataset) const;
  // Into memory of exactly `dims`; another shape is an InputError that names both.
  template <class T>
  void read_into(const std::string& dataset, const std::vector<std::int64_t>& dims, T* out) const;
  // In order, a MiB or so at a time, so that a data set is looked through without being held; it
  // counts as read whole.
  template <class T> using Use = std::function<void(std::span<const T>)>;
  template <class T> void visit(const std::string& dataset, const Use<T>& use) const;
  std::vector<std::string> read_text(const std::string& dataset) const;

  // Attributes of a group or data set ("/" is the root); nullopt where there is none.
  std::optional<std::string> text_attribute(const std::string& object,
                                            const std::string& name) const;
  std::optional<std::int64_t> integer_attribute(const std::string& object,
                                                const std::string& name) const;
  // Scalars and arrays alike.
  std::optional<std::vector<double>> number_attribute(const std::string& object,
                                                      const std::string& name) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class Hdf5Writer {
 public:
  // `expected_bytes`: of the file, where that is known; it then never moves while it grows.
  explicit Hdf5Writer(std::size_t expected_bytes = 0);
  ~Hdf5Writer();
  Hdf5Writer(Hdf5Writer&&) noexcept;
  Hdf5Writer& operator=(Hdf5Writer&&) noexcept;

  // Groups on the way are made. Empty `dims` writes a scalar. T as in Hdf5Reader::read.
  template <class T>
  void write(const std::string& dataset, const std::vector<std::int64_t>& dims, const T* values);
  void write_text(const std::string& dataset, const std::vector<std::string>& values);
  // An object that is not there yet becomes a group; an attribute of that name is replaced.
  void set_attribute(const std::string& object, const std::string& name, const std::string& value);
  void set_attribute(const std::string& object, const std::string& name, std::int64_t value);
  void set_attribute(const std::string& object, const std::string& name, double value);
  void set_attribute(const std::string& object, const std::string& name,
                     const std::vector<double>& values);

  // The finished file's bytes, with room for `spare` more in the vector's capacity. The same calls
  // give the same bytes (no time stamps). The writer is empty afterwards.
  std::vector<std::byte> finish(std::size_t spare = 0);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rk
