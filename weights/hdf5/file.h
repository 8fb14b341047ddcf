// Reads and writes HDF5 defensively: all of Rankine's HDF5 files go through these two classes.
//
// As long as a reader lives, its file is parsed in a separate process
// (engine/system/parser_process.h), since malformed files can crash the library, and a checksum
// proves the origin of a file no better than its name does. Opening walks the whole file and
// refuses, before anything is allocated: links other than hard links, virtual or external storage,
// filters other than shuffle and deflate, data sets that claim more than 1 MiB and more than 1100
// times the bytes stored for them, or more than 1 GiB and more than the file size, groups nested
// deeper than 16, more than 100,000 objects, and paths of more than 64 MiB in total. Reading
// refuses chunks that inflate beyond their declared size, and more than memory_for_file() in total,
// where each data set counts in the type that it is read as. Every refusal is an InputError
// "<file>: <what>; <what to do>"; so are a crash of the library and a timeout of 2 s of its CPU
// time (plus 1 s for each 8 MiB of the file and of the data read). Plugins are never loaded. The
// library converts numbers (float64 to float32 and so on), but a floating-point data set is never
// read as integers, nor text as numbers, and an integer that does not fit is an error. Opaque
// elements whose attribute `dtype` says bfloat16, as Keras writes them, are floating-point numbers.
// Writing builds the whole file in memory; weights/atomic_file.h puts it on disk.
//
// The HDF5 library is not thread-safe: only one thread at a time may use these classes, even for
// different files, and a reader must not outlive the thread that created it.
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
    int digits = 0;  // of kFloat: binary digits of a significand, the hidden one included
    std::vector<std::int64_t> dims;  // empty: a scalar
    std::int64_t elements() const;
  };

  explicit Hdf5Reader(const std::string& path);
  // Reads a file that is already in memory; `name` appears in messages.
  Hdf5Reader(std::span<const std::byte> image, const std::string& name);
  // `room`: the most bytes that may be read from it in total, if other data share the memory limit.
  Hdf5Reader(std::span<const std::byte> image, const std::string& name, std::uint64_t room);
  // With any parser that answers weights/hdf5/questions.h, so that tests can give arbitrary
  // answers.
  Hdf5Reader(const std::string& name, std::unique_ptr<Parser> parser);
  ~Hdf5Reader();
  Hdf5Reader(Hdf5Reader&&) noexcept;
  Hdf5Reader& operator=(Hdf5Reader&&) noexcept;

  const std::string& name() const;            // for messages
  const FileIdentity& identity() const;       // of the opened file; zeros for an image
  bool has(const std::string& object) const;  // "/weights/conv1.weight"
  std::vector<std::string> datasets(
      const std::string& group) const;  // full paths, recursive, sorted
  std::vector<std::string> children(
      const std::string& group) const;  // names one level below, sorted
  // Throws InputError if the data set is not read.
  Info info(const std::string& dataset) const;
  // Why a data set is not read: "/x holds neither numbers nor text; convert it"; empty if it is.
  std::string unread(const std::string& dataset) const;

  // T is float, double, std::int64_t or std::uint8_t.
  template <class T> std::vector<T> read(const std::string& dataset) const;
  // Reads into memory of shape `dims`; throws InputError naming both shapes if they differ.
  template <class T>
  void read_into(const std::string& dataset, const std::vector<std::int64_t>& dims, T* out) const;
  // Passes the elements to `use` in order, about a MiB at a time, so that a data set need not be
  // held in memory; it counts as read completely.
  template <class T> using Use = std::function<void(std::span<const T>)>;
  template <class T> void visit(const std::string& dataset, const Use<T>& use) const;
  std::vector<std::string> read_text(const std::string& dataset) const;

  // Attributes of a group or data set ("/" is the root); nullopt if there is none.
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
  // `expected_bytes`: the size of the file, if known; its memory is then never reallocated.
  explicit Hdf5Writer(std::size_t expected_bytes = 0);
  ~Hdf5Writer();
  Hdf5Writer(Hdf5Writer&&) noexcept;
  Hdf5Writer& operator=(Hdf5Writer&&) noexcept;

  // Creates missing groups. Empty `dims` writes a scalar. T as in Hdf5Reader::read.
  template <class T>
  void write(const std::string& dataset, const std::vector<std::int64_t>& dims, const T* values);
  void write_text(const std::string& dataset, const std::vector<std::string>& values);
  // A missing object is created as a group; an existing attribute of that name is replaced.
  void set_attribute(const std::string& object, const std::string& name, const std::string& value);
  void set_attribute(const std::string& object, const std::string& name, std::int64_t value);
  void set_attribute(const std::string& object, const std::string& name, double value);
  void set_attribute(const std::string& object, const std::string& name,
                     const std::vector<double>& values);

  // Returns the finished file, with capacity for `spare` more bytes. The same calls give the same
  // bytes (no time stamps). The writer is empty afterwards.
  std::vector<std::byte> finish(std::size_t spare = 0);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rk
