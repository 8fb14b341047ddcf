// A folder that exists as long as a test, with small pictures on request.
#pragma once

#include "data/images/encode_png.h"
#include "engine/base/error.h"
#include "engine/base/random.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace rk {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "rankine_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string spec() const { return "folder:" + path_.string(); }

  void write(const std::string& name, std::string_view bytes) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  // A noise picture that no other seed has.
  void picture(const std::string& name, std::uint64_t seed, int width = 24, int height = 18) const {
    Image image(width, height);
    CounterRandom random(seed, 0, 0);
    for (std::size_t i = 0; i < image.bytes(); ++i) {
      image.data()[i] = static_cast<std::uint8_t>(random.below(256));
    }
    const std::vector<std::byte> png = encode_png(image);
    write(name, {reinterpret_cast<const char*>(png.data()), png.size()});
  }

  // prefix0/0.png ..., `images` in each of `classes`.
  void classes(const std::string& prefix, int classes, int images) const {
    for (int c = 0; c < classes; ++c) {
      for (int i = 0; i < images; ++i) {
        picture(fmt::format("{}{}/{}.png", prefix, c, i),
                static_cast<std::uint64_t>(std::int64_t{c} * 1000 + i));
      }
    }
  }

 private:
  std::filesystem::path path_;
};

// Returns the message of the E that `f` throws; fails the test and returns "" if it throws none.
template <class E, class F> std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << "not one line";
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
    return "";
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

inline testing::AssertionResult holds(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << part << "' is not in: " << text;
}

}  // namespace rk
