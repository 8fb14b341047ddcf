// An open HDF5 file as the library sees it. Use it only in the parsing process
// (weights/hdf5/server.h): a malformed file may crash it at any call. For what is refused see
// weights/hdf5/file.h.
#pragma once

#include "engine/system/file_identity.h"
#include "weights/hdf5/chunk.h"
#include "weights/hdf5/file.h"
#include "weights/hdf5/questions.h"
#include "weights/hdf5/survey.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rk {

class Hdf5Parser : private SurveyedHdf5 {
 public:
  explicit Hdf5Parser(const std::string& path);
  // The same for a file in memory.
  Hdf5Parser(std::span<const std::byte> image, const std::string& name);

  using SurveyedHdf5::objects;
  FileIdentity identity() const;

  // As Hdf5Reader::unread().
  std::string unread(const std::string& path) { return look_at(path).unread; }
  Hdf5Reader::Info info(const std::string& path);
  // The sides of the pieces in which the data set is best read: reading boxes piece by piece reads
  // nothing else and nothing twice.
  std::vector<std::int64_t> piece(const std::string& path);

  // Reads the box's values to the front of `out`; returns the number of bytes.
  std::size_t read_numbers(const std::string& path, Hdf5Type type, const Hdf5Box& box,
                           std::span<std::byte> out);
  // Returns texts in C order from number `first` on; at least one if there is any.
  std::vector<std::string> read_texts(const std::string& path, std::uint64_t first);

  std::optional<std::string> text_attribute(const std::string& object, const std::string& name);
  std::optional<std::int64_t> integer_attribute(const std::string& object, const std::string& name);
  std::optional<std::vector<double>> number_attribute(const std::string& object,
                                                      const std::string& name);

 private:
  struct Open {  // the data set used last
    std::string path;
    std::string unread;  // why, and then nothing below is set; empty if it is read
    Hdf5DatasetId id;
    Hdf5TypeId stored;  // of its elements in the file: opaque if they are bfloat16
    Hdf5TypeId type;    // what they are
    Hdf5SpaceId space;
    std::size_t item = 0;  // bytes of an element in the file
    Hdf5Reader::Info info;
    std::vector<hsize_t> chunk;       // sides; empty unless stored as filtered chunks
    std::vector<Hdf5Filter> filters;  // of the chunks
    std::vector<std::byte> fill;      // one element, for chunks that are not stored
    std::vector<hsize_t> unfolded_at;
    std::vector<std::byte> unfolded;  // the chunk at unfolded_at; empty: none
    bool texts_checked = false;
  };

  Open& look_at(const std::string& path);
  Open& open(const std::string& path);  // as look_at(); refuses a data set that is not read
  std::string describe(Open& set);
  std::string describe_shape(Open& set) const;
  void describe_chunks(Open& set) const;
  void unfold(Open& set, const std::vector<hsize_t>& at) const;
  void check_all_chunks(Open& set) const;
  void convert(const Open& set, Hdf5Type type, std::size_t count, std::span<std::byte> own,
               std::span<std::byte> out) const;
  void read_box_of_chunk(Open& set, Hdf5Type type, const Hdf5Box& box, std::size_t count,
                         std::span<std::byte> out) const;
  [[noreturn]] void refuse_conversion(const std::string& path, Hdf5Type type) const;
  Hdf5AttributeId open_attribute(const std::string& object, const std::string& attribute) const;
  template <class T>
  std::vector<T> attribute_numbers(const std::string& object, const std::string& attribute,
                                   hid_t id) const;

  std::optional<Open> open_;
};

}  // namespace rk
