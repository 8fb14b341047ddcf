// Parses a pickle into a tree of inert nodes that describe what Python would build. Nothing that a
// file names is looked up, imported or called; a call becomes a node that holds the callee and its
// arguments. The opcodes that torch.save() and Python 2 and 3 write for tensors, training states
// and whole models are known; any other is refused with its offset.
//
// Limits: 64 MiB and 1,000,000 opcodes per pickle, 1 KiB per name of a global or module and 64 MiB
// for all. Texts and bytes above 64 KiB (a training log, a numpy array) are left out. Nothing
// recurses over the input. Nodes may be shared, and in a hostile file they may form cycles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rk {

inline constexpr std::uint64_t kMostPickledText = 64 << 10;

struct PickleNode {
  enum class Kind : std::uint8_t {
    kNone,
    kBool,     // integer
    kInteger,  // integer
    kLong,     // text: an integer of more than 8 bytes, two's complement, little-endian
    kReal,     // real
    kText,     // text
    kBytes,    // text
    kOmitted,  // text or bytes of more than kMostPickledText, not kept
    kTuple,    // items
    kList,     // items
    kSet,      // items
    kDict,     // pairs
    kGlobal,   // text: "module.name"
    kCall,     // items: the callee, the tuple of its arguments; pairs, state
    kStored,   // items: the identifier of an object outside the pickle
  };

  Kind kind = Kind::kNone;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<const PickleNode*> items;
  std::vector<std::pair<const PickleNode*, const PickleNode*>> pairs;
  const PickleNode* state = nullptr;  // of a call: the state that the object would be set to

  bool is_global(std::string_view name) const { return kind == Kind::kGlobal && text == name; }
  // Whether this is a call of the global, with any arguments.
  bool calls(std::string_view name) const {
    return kind == Kind::kCall && items[0]->is_global(name);
  }
};

class Pickle {
 public:
  // Reads one pickle from the front of `bytes`. `name` is for messages. Throws InputError.
  Pickle(std::span<const std::byte> bytes, const std::string& name);

  const PickleNode& root() const { return *root_; }
  std::size_t bytes() const { return at_; }  // of the pickle; other data may follow
  const std::set<std::string>& globals() const { return globals_; }
  // All kStored nodes, wherever they are.
  const std::vector<const PickleNode*>& stored() const { return stored_; }

 private:
  using Node = PickleNode;
  using Kind = PickleNode::Kind;

  void run();
  bool step_numbers(unsigned char opcode);
  bool step_containers(unsigned char opcode);
  bool step_objects(unsigned char opcode);

  template <class T> T number();
  std::string_view take(std::uint64_t bytes);
  std::string_view line();
  Node* make(Kind kind);
  void push(Node* node) { stack_.push_back(node); }
  void push_text(Kind kind, std::uint64_t bytes);
  Node* pop();
  Node* top();
  std::vector<Node*> pop_to_mark();
  void make_tuple(std::size_t items);
  void set_pairs(Node* to, const std::vector<Node*>& keys_and_values);
  void remember(std::uint64_t place, Node* node);
  void recall(std::uint64_t place);
  void make_global(const std::string& module, const std::string& attribute);
  [[noreturn]] void refuse(const std::string& what,
                           const char* advice = "download or save it again") const;

  std::span<const std::byte> input_;
  std::string name_;
  std::size_t at_ = 0;
  std::size_t opcode_at_ = 0;
  std::deque<Node> nodes_;
  std::vector<Node*> stack_;  // null: a mark
  std::unordered_map<std::uint64_t, Node*> memo_;
  std::set<std::string> globals_;
  std::size_t names_ = 0;  // bytes of all globals' names
  std::vector<const Node*> stored_;
  const Node* root_ = nullptr;
};

}  // namespace rk
