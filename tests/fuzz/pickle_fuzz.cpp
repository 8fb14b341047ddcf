// libFuzzer target: pickles, and the tensors that they describe. Every storage that a pickle names
// exists, with as many elements as the pickle says, up to a thousand.
#include "engine/base/error.h"
#include "tests/fuzz/look_through.h"
#include "weights/tensor_files/torch_pickle.h"

#include <algorithm>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<std::byte> kZeros(8192);
  try {
    const rk::Pickle pickle(std::as_bytes(std::span(data, size)), "fuzz");
    if (pickle.bytes() > size) std::abort();
    rk::TorchStorages storages;
    storages.find = [](const rk::PickleNode& node) {
      rk::TorchStorage storage;
      std::int64_t elements = 0;
      for (const rk::PickleNode* part : node.items[0]->items) {
        elements = rk::pickled_integer(*part).value_or(elements);
        storage.type = rk::torch_element_type(part->text).value_or(storage.type);
      }
      const auto item = static_cast<std::size_t>(rk::bits_of(storage.type) / 8);
      const auto count = static_cast<std::size_t>(std::clamp<std::int64_t>(elements, 0, 1000));
      storage.bytes = std::span(kZeros).first(count * item);
      return storage;
    };
    storages.whole = [](const rk::PickleNode&) { return std::nullopt; };
    rk::TensorFile file;
    file.path = "fuzz";
    rk::collect_tensors(pickle, storages, file);
    rk::look_through(file);
  } catch (const rk::InputError&) {
    // Refusing the file is the only failure allowed.
  }
  return 0;
}
