// Answers the questions of weights/hdf5/questions.h about one file, in a ParserProcess.
#pragma once

#include "weights/hdf5/parser.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace rk {

class Hdf5Server {
 public:
  explicit Hdf5Server(std::string path) : name_(std::move(path)) {}
  // For a file in memory, which must stay valid until the first question is answered.
  Hdf5Server(std::span<const std::byte> image, std::string name)
      : name_(std::move(name)), image_(image) {}

  // See ParserProcess::Serve. The first question opens the file.
  std::size_t operator()(std::span<std::byte> slot, std::size_t bytes);

 private:
  void open();

  std::string name_;
  std::span<const std::byte> image_;
  std::unique_ptr<Hdf5Parser> parser_;
  std::vector<std::string> paths_;  // of all objects, sorted
};

}  // namespace rk
