// libFuzzer target: reading a checkpoint gives a sound one or throws InputError, whether the input
// is any bytes as a file, or any answers of a parser to questions about a file with a valid seal.
// The first byte chooses between the two.
//
// The HDF5 library has targets of its own (hdf5_fuzz, with a checkpoint's HDF5 among its seeds): it
// takes a process a run, which would slow the checks here down to a hundred runs a second. Only an
// Hdf5Reader stands between the library and these checks.
#include "engine/base/error.h"
#include "engine/base/packed_values.h"
#include "tests/fuzz/answers_to_fuzz.h"
#include "tests/fuzz/file_to_fuzz.h"
#include "tests/fuzz/look_at_checkpoint.h"
#include "weights/hdf5/questions.h"

#include <cstdint>
#include <map>

namespace {

// Whether an answer about a shape gives more than 2^12 elements: slow, and finds nothing new.
bool too_large(std::span<const std::byte> question, std::span<const std::byte> answer) {
  rk::PackedReader asked(question), in(answer);
  if (asked.number() != static_cast<std::uint64_t>(rk::Hdf5Question::kInfo)) return false;
  std::uint64_t product = 1;
  try {
    in.number();
    for (std::uint64_t rank = std::min<std::uint64_t>(in.number(), rk::kHdf5MaxRank); rank > 0;
         --rank) {
      product *= std::min<std::uint64_t>(in.number(), 1 << 12);
    }
  } catch (const std::out_of_range&) {
  }
  return product > 1 << 12;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::span<const std::byte> bytes = std::as_bytes(std::span(data, size)).subspan(1);
  // The same question gets the same answer, as from a file.
  std::map<std::vector<std::byte>, std::vector<std::byte>> said;
  const auto say = [&](std::span<const std::byte> question) {
    std::vector<std::byte> asked(question.begin(), question.end());
    const auto [at, fresh] = said.try_emplace(std::move(asked));
    if (fresh) at->second = rk::next_answer(bytes);
    if (too_large(question, at->second)) at->second.clear();
    return at->second;
  };
  try {
    if ((data[0] & 1U) == 0) {
      const rk::Checkpoint checkpoint(rk::file_to_fuzz(bytes));
      rk::demand(checkpoint.sha256().size() == 64);
      rk::look_at_checkpoint(checkpoint);
    } else {
      rk::look_at_checkpoint(rk::Checkpoint(rk::reader_of(say), "the seal's"));
    }
  } catch (const rk::InputError&) {
  }
  return 0;
}
