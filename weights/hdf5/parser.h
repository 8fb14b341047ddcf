// An open HDF5 file as the library sees it. Only for the process that parses
// (weights/hdf5/server.h): a malformed file may end it at any call. What is refused, and in which
// words: weights/hdf5/file.h.
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
  // The same over a file that is in memory.
  Hdf5Parser(std::span<const std::byte> image, const std::string& name);

  using SurveyedHdf5::objects;
  FileIdentity identity() const;

  Hdf5Reader::Info info(const std::string& path);
  // Boxes that lie in one of these pieces are read without reading more, or anything twice.
  std::vector<std::int64_t> piece(const std::string& path);

  // The box's values into `out`, which is as large as they are; returns their bytes.
  std::size_t read_numbers(const std::string& path, Hdf5Type type, const Hdf5Box& box,
                           std::span<std::byte> out);
  // Texts in C order from number `first` on; at least one where there is one.
  std::vector<std::string> read_texts(const std::string& path, std::uint64_t first);

  std::optional<std::string> text_attribute(const std::string& object, const std::string& name);
  std::optional<std::int64_t> integer_attribute(const std::string& object, const std::string& name);
  std::optional<std::vector<double>> number_attribute(const std::string& object,
                                                      const std::string& name);

 private:
  struct Open {  // the data set that was asked for last
    std::string path;
    Hdf5DatasetId id;
    Hdf5TypeId type;
    Hdf5SpaceId space;
    std::size_t item = 0;  // bytes of an element in the file
    Hdf5Reader::Info info;
    std::vector<hsize_t> chunk;       // sides; empty unless it is stored in chunks with filters
    std::vector<Hdf5Filter> filters;  // of those
    std::vector<std::byte> fill;      // one element, for chunks that are not stored
    std::vector<hsize_t> unfolded_at;
    std::vector<std::byte> unfolded;  // the chunk there; empty: none
    bool texts_checked = false;
  };

  Open& open(const std::string& path);
  void describe(Open& set) const;
  void describe_chunks(Open& set) const;
  void unfold(Open& set, const std::vector<hsize_t>& at) const;
  void check_all_chunks(Open& set) const;
  void convert(const Open& set, Hdf5Type type, std::size_t count, std::span<std::byte> out) const;
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
