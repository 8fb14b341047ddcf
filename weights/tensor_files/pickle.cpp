#include "weights/tensor_files/pickle.h"

#include "engine/base/error.h"
#include "engine/base/printable.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace rk {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
constexpr std::size_t kMaxOpcodes = 1'000'000;
// Limits for globals, each of which stores its name again: a few bytes of input can name one by
// memoised texts.
constexpr std::size_t kMaxNamePart = 1 << 10;
constexpr std::size_t kMaxGlobals = std::size_t{64} << 20;
constexpr int kMaxProtocol = 5;
// For limits: what exceeds them lies beside the weights.
constexpr const char* kWeightsAlone = "save the weights alone";

// Named as in Python's pickletools.
enum Opcode : unsigned char {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kDict = 'd',
  kEmptyDict = '}',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kList = 'l',
  kEmptyList = ']',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kEmptyTuple = ')',
  kSetItems = 'u',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kProto = 0x80,
  kNewObj = 0x81,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
  kByteArray8 = 0x96,
};

}  // namespace

Pickle::Pickle(std::span<const std::byte> bytes, const std::string& name)
    : input_(bytes.first(std::min(bytes.size(), kMaxBytes))), name_(name) {
  run();
}

void Pickle::run() {
  for (std::size_t opcodes = 0;; ++opcodes) {
    if (opcodes == kMaxOpcodes) {
      refuse(fmt::format("holds more than {} opcodes", kMaxOpcodes), kWeightsAlone);
    }
    opcode_at_ = at_;
    const auto opcode = number<unsigned char>();
    if (opcode == kStop) break;
    if (!step_numbers(opcode) && !step_containers(opcode) && !step_objects(opcode)) {
      refuse(fmt::format("holds the opcode 0x{:02x}, which no file of tensors needs", opcode),
             "download it again or save the weights alone");
    }
  }
  root_ = pop();
  stack_.clear();
  memo_.clear();
}

bool Pickle::step_numbers(unsigned char opcode) {
  const auto integer = [&](std::int64_t value) {
    Node* node = make(Kind::kInteger);
    node->integer = value;
    push(node);
    return true;
  };
  switch (opcode) {
    case kProto:
      if (const auto protocol = number<std::uint8_t>(); protocol > kMaxProtocol) {
        refuse(fmt::format("is of protocol {}, at most {} are known", protocol, kMaxProtocol));
      }
      return true;
    case kFrame: number<std::uint64_t>(); return true;
    case kNone: push(make(Kind::kNone)); return true;
    case kNewTrue:
    case kNewFalse: {
      Node* node = make(Kind::kBool);
      node->integer = opcode == kNewTrue ? 1 : 0;
      push(node);
      return true;
    }
    case kBinInt: return integer(number<std::int32_t>());
    case kBinInt1: return integer(number<std::uint8_t>());
    case kBinInt2: return integer(number<std::uint16_t>());
    case kBinFloat: {
      Node* node = make(Kind::kReal);
      node->real = std::bit_cast<double>(__builtin_bswap64(number<std::uint64_t>()));
      push(node);
      return true;
    }
    case kLong1: {
      const auto size = number<std::uint8_t>();
      const std::string_view digits = take(size);
      if (size > sizeof(std::int64_t)) {
        Node* node = make(Kind::kLong);
        node->text = digits;
        push(node);
        return true;
      }
      // Sign-extended from its last byte.
      const bool negative = size > 0 && (static_cast<unsigned char>(digits.back()) & 0x80U) != 0;
      std::uint64_t value = negative ? ~std::uint64_t{0} : 0;
      std::memcpy(&value, digits.data(), digits.size());
      return integer(static_cast<std::int64_t>(value));
    }
    case kBinString: {
      const auto size = number<std::int32_t>();
      if (size < 0) refuse("holds a text of negative length");
      push_text(Kind::kText, static_cast<std::uint64_t>(size));
      return true;
    }
    case kShortBinString:
    case kShortBinUnicode: push_text(Kind::kText, number<std::uint8_t>()); return true;
    case kBinUnicode: push_text(Kind::kText, number<std::uint32_t>()); return true;
    case kBinUnicode8: push_text(Kind::kText, number<std::uint64_t>()); return true;
    case kShortBinBytes: push_text(Kind::kBytes, number<std::uint8_t>()); return true;
    case kBinBytes: push_text(Kind::kBytes, number<std::uint32_t>()); return true;
    case kBinBytes8:
    case kByteArray8: push_text(Kind::kBytes, number<std::uint64_t>()); return true;
    default: return false;
  }
}

bool Pickle::step_containers(unsigned char opcode) {
  switch (opcode) {
    case kMark: push(nullptr); return true;
    case kPop:
      if (stack_.empty()) refuse("takes from an empty stack");
      stack_.pop_back();
      return true;
    case kPopMark: pop_to_mark(); return true;
    case kDup: push(top()); return true;
    case kEmptyTuple: push(make(Kind::kTuple)); return true;
    case kEmptyList: push(make(Kind::kList)); return true;
    case kEmptyDict: push(make(Kind::kDict)); return true;
    case kEmptySet: push(make(Kind::kSet)); return true;
    case kTuple1: make_tuple(1); return true;
    case kTuple2: make_tuple(2); return true;
    case kTuple3: make_tuple(3); return true;
    case kTuple:
    case kList:
    case kFrozenSet: {
      const std::vector<Node*> items = pop_to_mark();
      Node* node = make(opcode == kTuple  ? Kind::kTuple
                        : opcode == kList ? Kind::kList
                                          : Kind::kSet);
      node->items.assign(items.begin(), items.end());
      push(node);
      return true;
    }
    case kDict: {
      const std::vector<Node*> items = pop_to_mark();
      Node* node = make(Kind::kDict);
      set_pairs(node, items);
      push(node);
      return true;
    }
    case kAppend: {
      Node* item = pop();
      top()->items.push_back(item);
      return true;
    }
    case kAppends:
    case kAddItems: {
      const std::vector<Node*> items = pop_to_mark();
      // The object may be a call (of a list subclass); its callee and arguments stay in front.
      std::vector<const Node*>& to = top()->items;
      to.insert(to.end(), items.begin(), items.end());
      return true;
    }
    case kSetItem: {
      Node* value = pop();
      Node* key = pop();
      set_pairs(top(), {key, value});
      return true;
    }
    case kSetItems: {
      const std::vector<Node*> items = pop_to_mark();
      set_pairs(top(), items);
      return true;
    }
    default: return false;
  }
}

bool Pickle::step_objects(unsigned char opcode) {
  switch (opcode) {
    case kGlobal: {
      const std::string module(line());
      make_global(module, std::string(line()));
      return true;
    }
    case kStackGlobal: {
      const Node* attribute = pop();
      const Node* module = pop();
      if (attribute->kind != Kind::kText || module->kind != Kind::kText) {
        refuse("names a global by something that is no text");
      }
      make_global(module->text, attribute->text);
      return true;
    }
    case kReduce:
    case kNewObj: {
      Node* arguments = pop();
      Node* called = pop();
      Node* node = make(Kind::kCall);
      node->items = {called, arguments};
      push(node);
      return true;
    }
    case kBuild: {
      const Node* state = pop();
      top()->state = state;
      return true;
    }
    case kBinPersId: {
      Node* identifier = pop();
      Node* node = make(Kind::kStored);
      node->items = {identifier};
      stored_.push_back(node);
      push(node);
      return true;
    }
    case kBinPut: remember(number<std::uint8_t>(), top()); return true;
    case kLongBinPut: remember(number<std::uint32_t>(), top()); return true;
    case kMemoize: remember(memo_.size(), top()); return true;
    case kBinGet: recall(number<std::uint8_t>()); return true;
    case kLongBinGet: recall(number<std::uint32_t>()); return true;
    default: return false;
  }
}

template <class T> T Pickle::number() {
  T value;
  const std::string_view bytes = take(sizeof(T));
  std::memcpy(&value, bytes.data(), bytes.size());
  return value;
}

std::string_view Pickle::take(std::uint64_t bytes) {
  if (bytes > input_.size() - at_) {
    if (input_.size() == kMaxBytes) {
      refuse("is larger than 64 MiB, as arrays of numpy make it",
             "save tensors of torch alone: model.state_dict()");
    }
    refuse("ends in the middle");
  }
  const auto* begin = reinterpret_cast<const char*>(input_.data()) + at_;
  at_ += bytes;
  return {begin, bytes};
}

std::string_view Pickle::line() {
  const auto* begin = reinterpret_cast<const char*>(input_.data()) + at_;
  const std::string_view rest(begin, std::min<std::size_t>(input_.size() - at_, kMostPickledText));
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos) refuse("holds a name without an end");
  at_ += end + 1;
  return rest.substr(0, end);
}

PickleNode* Pickle::make(Kind kind) {
  nodes_.emplace_back().kind = kind;
  return &nodes_.back();
}

void Pickle::push_text(Kind kind, std::uint64_t bytes) {
  const std::string_view text = take(bytes);
  const bool kept = bytes <= kMostPickledText;
  Node* node = make(kept ? kind : Kind::kOmitted);
  if (kept) node->text = text;
  push(node);
}

PickleNode* Pickle::top() {
  if (stack_.empty() || stack_.back() == nullptr) refuse("takes from an empty stack");
  return stack_.back();
}

PickleNode* Pickle::pop() {
  Node* node = top();
  stack_.pop_back();
  return node;
}

std::vector<PickleNode*> Pickle::pop_to_mark() {
  const auto mark = std::find(stack_.rbegin(), stack_.rend(), nullptr);
  if (mark == stack_.rend()) refuse("misses a mark");
  std::vector<Node*> items(mark.base(), stack_.end());
  stack_.erase(mark.base() - 1, stack_.end());
  return items;
}

void Pickle::make_tuple(std::size_t items) {
  std::vector<const Node*> members(items);
  for (std::size_t i = items; i-- > 0;) members[i] = pop();
  Node* node = make(Kind::kTuple);
  node->items = std::move(members);
  push(node);
}

void Pickle::set_pairs(Node* to, const std::vector<Node*>& keys_and_values) {
  if (keys_and_values.size() % 2 != 0) refuse("holds a key without a value");
  for (std::size_t i = 0; i < keys_and_values.size(); i += 2) {
    to->pairs.emplace_back(keys_and_values[i], keys_and_values[i + 1]);
  }
}

void Pickle::remember(std::uint64_t place, Node* node) {
  // Writers number memo entries from 0 on, so no valid number exceeds the number of opcodes.
  if (place >= kMaxOpcodes) refuse(fmt::format("remembers something at place {}", place));
  memo_[place] = node;
}

void Pickle::recall(std::uint64_t place) {
  const auto found = memo_.find(place);
  if (found == memo_.end()) refuse(fmt::format("recalls place {}, where nothing is", place));
  push(found->second);
}

void Pickle::make_global(const std::string& module, const std::string& attribute) {
  if (const std::size_t longer = std::max(module.size(), attribute.size()); longer > kMaxNamePart) {
    refuse(fmt::format("names a global by a text of {} bytes", longer), kWeightsAlone);
  }
  Node* node = make(Kind::kGlobal);
  node->text = module + "." + attribute;
  names_ += node->text.size();
  if (names_ > kMaxGlobals) {
    refuse(fmt::format("names globals of more than {} MiB in all", kMaxGlobals >> 20),
           kWeightsAlone);
  }
  globals_.insert(node->text);
  push(node);
}

void Pickle::refuse(const std::string& what, const char* advice) const {
  fail<InputError>("{}: its pickle {} (byte {}); {}", printable(name_), what, opcode_at_, advice);
}

}  // namespace rk
