#include "retrieval/files/array_file.h"

#include "engine/base/error.h"
#include "engine/base/lower_case.h"
#include "engine/base/printable.h"
#include "engine/base/text_of.h"
#include "retrieval/files/mapped_file.h"
#include "retrieval/files/npy.h"
#include "weights/tensor_files/archive_entries.h"
#include "weights/tensor_files/file_kind.h"
#include "weights/tensor_files/safetensors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <utility>

namespace rk {
namespace {

constexpr std::uint64_t kFreeBytes = std::uint64_t{1} << 30;

// Messages use numpy's names of types: safetensors calls float16 F16.
std::string words_of(ElementType type) {
  std::string name = lower_case(std::string(name_of(type)));
  const auto digit =
      std::find_if(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  const std::string kind(name.begin(), digit), bits(digit, name.end());
  if (kind == "f") return "float" + bits;
  if (kind == "bf") return "bfloat" + bits;
  if (kind == "i") return "int" + bits;
  if (kind == "u") return "uint" + bits;
  return name;
}

}  // namespace

ArrayFile::ArrayFile(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                     std::string path)
    : path_(std::move(path)), file_bytes_(bytes.size()) {
  if (is_npy(bytes)) {
    format_ = "npy";
    members_.push_back({"", read_npy(bytes, std::move(owner), printable(path_)), ""});
  } else if (is_zip(text_of(bytes))) {
    format_ = "npz";
    read_npz(bytes);
    for (Member& member : members_) {
      if (member.problem.empty() && !member.array.tensor.owner) member.array.tensor.owner = owner;
    }
  } else {
    format_ = "safetensors";
    read_tensors(bytes, owner);
  }
}

void ArrayFile::read_npz(std::span<const std::byte> bytes) {
  constexpr std::string_view kEnding = ".npy";
  std::string others;
  for (auto& [name, entry] : archive_entries(bytes, ArchiveKind::kZip, true, path_)) {
    if (name.ends_with("data.pkl")) {
      fail<InputError>(
          "{}: is an archive of PyTorch, whose pickle is not loaded; save the arrays by "
          "numpy.savez(FILE, embeddings=..., labels=...)",
          printable(path_));
    }
    if (!name.ends_with(kEnding)) {
      others += fmt::format("{}{}", others.empty() ? "" : ", ", in_quotes(name));
      continue;
    }
    Member member;
    member.name = name.substr(0, name.size() - kEnding.size());
    if (entry.owner) unpacked_bytes_ += entry.bytes.size();
    try {
      member.array = read_npy(entry.bytes, entry.owner,
                              fmt::format("{}: {}", printable(path_), in_quotes(member.name)));
      member.array.name = member.name;
    } catch (const InputError& error) {
      member.problem = error.what();
    }
    members_.push_back(std::move(member));
  }
  if (!members_.empty()) return;
  fail<InputError>(
      "{}: is a zip archive that holds no array of numpy's ({}); give a file of "
      "numpy.savez(FILE, embeddings=..., labels=...)",
      printable(path_),
      others.empty() ? std::string("it is empty") : "but " + others.substr(0, 120));
}

void ArrayFile::read_tensors(std::span<const std::byte> bytes,
                             const std::shared_ptr<const void>& owner) {
  for (StoredTensor& tensor : read_safetensors(bytes, owner, path_).tensors) {
    Member member;
    member.name = tensor.name;
    member.array.name = tensor.name;
    member.array.dtype = words_of(tensor.type);
    member.array.tensor = std::move(tensor);
    members_.push_back(std::move(member));
  }
}

const StoredArray& ArrayFile::checked(const Member& member) const {
  if (!member.problem.empty()) throw InputError(member.problem);
  return member.array;
}

const StoredArray& ArrayFile::named(const std::string& name) const {
  for (const Member& member : members_) {
    if (member.name == name) return checked(member);
  }
  if (members_.size() == 1 && members_.front().name.empty()) {
    fail<InputError>("{}: holds one array without a name; leave :{} out", printable(path_), name);
  }
  fail<InputError>("{}: no array {}; {}", printable(path_), in_quotes(name), contents());
}

const StoredArray* ArrayFile::find(std::span<const std::string> names) const {
  for (const std::string& name : names) {
    for (const Member& member : members_) {
      if (lower_case(member.name) == name) return &checked(member);
    }
  }
  return nullptr;
}

std::vector<const StoredArray*> ArrayFile::all() const {
  std::vector<const StoredArray*> out;
  for (const Member& member : members_) {
    if (member.problem.empty()) out.push_back(&member.array);
  }
  return out;
}

std::string ArrayFile::contents() const {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> out;
  for (const Member& member : members_) {
    if (out.size() == kMost) {
      out.push_back("...");
      break;
    }
    out.push_back(fmt::format(
        "{} ({})", in_quotes(member.name),
        member.problem.empty() ? text_of(member.array) : std::string("not to be read")));
  }
  return out.empty() ? "it holds nothing" : fmt::format("it holds {}", fmt::join(out, ", "));
}

void ArrayFile::check_memory(std::uint64_t more) const {
  if (unpacked_bytes_ == 0 || unpacked_bytes_ + more <= std::max(2 * file_bytes_, kFreeBytes)) {
    return;
  }
  fail<InputError>(
      "{}: unpacks to {} MiB and needs {} MiB beside; save it uncompressed as float32 "
      "(numpy.savez)",
      printable(path_), unpacked_bytes_ >> 20, more >> 20);
}

bool holds_arrays(std::span<const std::byte> bytes) {
  return is_npy(bytes) || is_zip(text_of(bytes)) || is_safetensors(text_of(bytes));
}

ArrayFile open_arrays(const std::string& path) {
  return open_arrays(std::make_shared<const MappedFile>(path), path);
}

ArrayFile open_arrays(const std::shared_ptr<const MappedFile>& file, const std::string& path) {
  if (holds_arrays(file->bytes())) {
    try {
      return ArrayFile(file->bytes(), file, path);
    } catch (const InputError&) {
      check_mapped_files();
      throw;
    }
  }
  const std::string_view text = text_of(file->bytes());
  if (is_pickle(text)) {
    fail<InputError>(
        "{}: is a pickle, and a pickle can run programs: it is never loaded; save the array by "
        "numpy.save(FILE, array)",
        printable(path));
  }
  if (const std::string other = other_kind(text); !other.empty()) {
    fail<InputError>("{}: {}", printable(path), other);
  }
  fail<InputError>(
      "{}: is no file of embeddings that is known; give HDF5, .npy, .npz or "
      "safetensors",
      printable(path));
}

FileAndName file_and_name(const std::string& text) {
  std::error_code ignored;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || std::filesystem::exists(text, ignored)) {
    return {text, ""};
  }
  const std::string file = text.substr(0, colon);
  if (!std::filesystem::exists(file, ignored)) return {text, ""};
  return {file, text.substr(colon + 1)};
}

}  // namespace rk
