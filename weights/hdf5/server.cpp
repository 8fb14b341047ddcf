#include "weights/hdf5/server.h"

#include "engine/base/packed_values.h"
#include "weights/hdf5/questions.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <stdexcept>

namespace rk {
namespace {

void put(PackedWriter& out, const std::vector<std::int64_t>& sides) {
  for (const std::int64_t side : sides) out.number(static_cast<std::uint64_t>(side));
}

std::vector<std::int64_t> take(PackedReader& in, std::size_t count) {
  std::vector<std::int64_t> values(count);
  for (std::int64_t& value : values) value = static_cast<std::int64_t>(in.number());
  return values;
}

// Bytes of a text besides its characters: whether it ends here, and its length.
constexpr std::size_t kTextOverhead = 16;

void put_texts(PackedWriter& out, const std::vector<std::string>& texts, std::uint64_t byte) {
  if (!texts.empty() && byte > texts.front().size()) {
    throw std::runtime_error("changes while it is read");
  }
  for (const std::string& text : texts) {
    if (out.room() <= kTextOverhead) return;
    const auto rest = std::string_view(text).substr(static_cast<std::size_t>(byte));
    const auto part = rest.substr(0, out.room() - kTextOverhead);
    out.number(part.size() == rest.size() ? 1 : 0);
    out.text(part);
    byte = 0;
  }
}

}  // namespace

void Hdf5Server::open() {
  parser_ = image_.empty() ? std::make_unique<Hdf5Parser>(name_)
                           : std::make_unique<Hdf5Parser>(image_, name_);
  for (const auto& [path, is_dataset] : parser_->objects) paths_.push_back(path);
}

std::size_t Hdf5Server::operator()(std::span<std::byte> slot, std::size_t bytes) {
  const std::vector<std::byte> copy(slot.begin(),
                                    slot.begin() + static_cast<std::ptrdiff_t>(bytes));
  if (!parser_) open();
  PackedReader in(copy);
  PackedWriter out(slot);
  const auto question = static_cast<Hdf5Question>(in.number());
  if (question == Hdf5Question::kOpen) {
    const FileIdentity id = parser_->identity();
    for (const auto each : {id.device, id.inode, id.bytes, id.seconds, id.nanoseconds}) {
      out.number(each);
    }
    return out.bytes();
  }
  if (question == Hdf5Question::kObjects) {
    out.number(paths_.size());
    for (std::size_t i = in.number(); i < paths_.size(); ++i) {
      if (paths_[i].size() + 2 * sizeof(std::uint64_t) > out.room()) break;
      out.text(paths_[i]);
      out.number(parser_->objects.at(paths_[i]) ? 1 : 0);
    }
    return out.bytes();
  }
  const std::string path(in.text());
  switch (question) {
    case Hdf5Question::kInfo: {
      if (const std::string why = parser_->unread(path); !why.empty()) {
        out.number(kHdf5Unread);
        out.text(why);
        break;
      }
      const Hdf5Reader::Info info = parser_->info(path);
      out.number(static_cast<std::uint64_t>(info.kind));
      out.number(static_cast<std::uint64_t>(info.digits));
      out.number(info.dims.size());
      put(out, info.dims);
      put(out, parser_->piece(path));
      break;
    }
    case Hdf5Question::kNumbers: {
      const auto type = static_cast<Hdf5Type>(in.number());
      const std::size_t rank = parser_->info(path).dims.size();
      std::size_t done = 0;
      do {  // a scalar's box is empty
        const Hdf5Box box{take(in, rank), take(in, rank)};
        done += parser_->read_numbers(path, type, box, slot.subspan(done));
      } while (!in.at_end());
      return done;
    }
    case Hdf5Question::kTexts: {
      const std::uint64_t first = in.number(), byte = in.number();
      put_texts(out, parser_->read_texts(path, first), byte);
      break;
    }
    case Hdf5Question::kTextAttribute: {
      const auto value = parser_->text_attribute(path, std::string(in.text()));
      out.number(value ? 1 : 0);
      if (value) out.text(*value);
      break;
    }
    case Hdf5Question::kIntegerAttribute: {
      const auto value = parser_->integer_attribute(path, std::string(in.text()));
      out.number(value ? 1 : 0);
      if (value) out.number(static_cast<std::uint64_t>(*value));
      break;
    }
    case Hdf5Question::kNumberAttribute: {
      const auto values = parser_->number_attribute(path, std::string(in.text()));
      out.number(values ? values->size() : 0);
      for (std::size_t i = 0; values && i < values->size(); ++i) {
        out.number(std::bit_cast<std::uint64_t>((*values)[i]));
      }
      break;
    }
    default: throw std::invalid_argument("[hdf5] no such question");
  }
  return out.bytes();
}

}  // namespace rk
