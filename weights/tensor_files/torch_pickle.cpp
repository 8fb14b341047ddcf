#include "weights/tensor_files/torch_pickle.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/base/shape.h"
#include "weights/tensor_files/torch_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <unordered_set>

namespace rk {
namespace {

using Kind = PickleNode::Kind;

constexpr std::size_t kMaxVisits = 1'000'000;
constexpr std::size_t kMaxNames = std::size_t{64} << 20;  // bytes of all names together

struct NamedType {
  std::string_view name;
  ElementType type;
};
constexpr std::array<NamedType, 11> kTypes = {{{"Float", ElementType::kF32},
                                               {"Double", ElementType::kF64},
                                               {"Half", ElementType::kF16},
                                               {"BFloat16", ElementType::kBf16},
                                               {"Long", ElementType::kI64},
                                               {"Int", ElementType::kI32},
                                               {"Short", ElementType::kI16},
                                               {"Char", ElementType::kI8},
                                               {"Byte", ElementType::kU8},
                                               {"Bool", ElementType::kBool},
                                               {"ComplexFloat", ElementType::kC64}}};
// Classes of storages that weights never have. The name of an untyped one may begin otherwise.
struct OtherType {
  std::string_view name;
  std::size_t item_bytes;
};
constexpr std::array<OtherType, 8> kOtherTypes = {{{"ComplexDouble", 16},
                                                   {"ComplexHalf", 4},
                                                   {"QInt32", 4},
                                                   {"QInt8", 1},
                                                   {"QUInt8", 1},
                                                   {"QUInt4x2", 1},
                                                   {"QUInt2x4", 1},
                                                   {"Untyped", 1}}};
constexpr std::array<std::string_view, 2> kUntyped = {"torch.storage.UntypedStorage",
                                                      "torch.storage._UntypedStorage"};

// Whether `global` is "torch.<name>Storage", "torch.cuda.<name>Tensor" and so on.
bool is_class(const std::string& global, std::string_view name) {
  for (const char* what : {"Storage", "Tensor"}) {
    for (const char* module : {"torch.", "torch.cuda."}) {
      if (global == fmt::format("{}{}{}", module, name, what)) return true;
    }
  }
  return false;
}

std::vector<std::int64_t> integers(const PickleNode& node, const std::string& tensor,
                                   const std::string& file) {
  const PickleNode* tuple = &node;
  // torch.Size((2, 3)) is a call with the tuple as its only argument.
  if (node.kind == Kind::kCall && node.items[1]->items.size() == 1) tuple = node.items[1]->items[0];
  std::vector<std::int64_t> values;
  for (const PickleNode* item : tuple->items) {
    const std::optional<std::int64_t> value = pickled_integer(*item);
    if (!value || tuple->kind != Kind::kTuple || values.size() == kMaxTorchRank) {
      fail<InputError>("{}: tensor '{}' has a size or stride that is no integer; save it again",
                       printable(file), printable(tensor));
    }
    values.push_back(*value);
  }
  return values;
}

// The calls that create a tensor, with their arguments.
constexpr const char* kRebuild =
    "torch._utils._rebuild_tensor_v2";  // storage, offset, size, stride, ..., bits of the view
constexpr const char* kRebuildFirst = "torch._utils._rebuild_tensor";  // the same four
constexpr const char* kParameter = "torch._utils._rebuild_parameter";  // tensor, ...
constexpr const char* kParameterWithState = "torch._utils._rebuild_parameter_with_state";
constexpr const char* kParameterClass = "torch.nn.parameter.Parameter";   // tensor, ...
constexpr const char* kFromType = "torch._tensor._rebuild_from_type_v2";  // call, class, arguments
// Tensors of devices whose memory has no storage (XLA, MAIA): one of the CPU, ...; or, in earlier
// versions, an array of numpy, ...
constexpr const char* kFromCpu = "torch._utils._rebuild_device_tensor_from_cpu_tensor";
constexpr std::array<const char*, 2> kFromNumpy = {"torch._utils._rebuild_device_tensor_from_numpy",
                                                   "torch._utils._rebuild_xla_tensor"};
// Other calls that begin so create tensors that are sparse, quantised or of a newer type.
constexpr std::string_view kRebuildOther = "torch._utils._rebuild_";

class Walk {
 public:
  Walk(const TorchStorages& storages, TensorFile& file) : storages_(storages), file_(file) {}

  void run(const PickleNode& root) {
    if (root.kind == Kind::kTuple || root.kind == Kind::kList) {
      fail<InputError>(
          "{}: holds a {} where a dictionary of tensors is expected; save the state_dict alone: "
          "torch.save(model.state_dict(), FILE)",
          printable(file_.path), root.kind == Kind::kTuple ? "tuple" : "list");
    }
    todo_.push_back({&root, "", ""});
    while (!todo_.empty()) {
      const Place place = std::move(todo_.back());
      todo_.pop_back();
      visit(place);
    }
    if (left_.empty()) return;
    file_.notes.push_back(
        fmt::format("left out: {} of types that are not read (sparse, quantised, "
                    "complex and the like): {}",
                    counted(left_.size(), "tensor"), listed(left_)));
  }

 private:
  struct Place {
    const PickleNode* node;
    std::string path;       // of the node
    std::string separator;  // between the path and what is below
  };

  using Pair = std::pair<const PickleNode*, const PickleNode*>;

  void visit(const Place& place) {
    const PickleNode& node = *place.node;
    if (add_tensor(node, place.path)) return;
    if (node.kind == Kind::kCall && node.state != nullptr) visit_module(*node.state, place.path);
    // Not only of a dictionary, but of an object of any class made from one (EasyDict, addict).
    visit_pairs(node, place.path, "/");
  }

  // In reverse, so that the stack returns them in the file's order.
  void visit_pairs(const PickleNode& node, const std::string& path, const std::string& separator) {
    const std::vector<Pair> pairs = pairs_of(node);
    for (std::size_t i = pairs.size(); i-- > 0;) {
      const auto& [key, value] = pairs[i];
      std::string name;
      if (key->kind == Kind::kText) {
        name = key->text;
      } else if (key->kind == Kind::kInteger) {
        name = std::to_string(key->integer);
      } else if (key->kind == Kind::kOmitted) {
        fail<InputError>("{}: a name in it has more than {} KiB; save it again",
                         printable(file_.path), kMostPickledText >> 10);
      } else {
        continue;
      }
      if (!path.empty()) name.insert(0, path + separator);
      names_ += name.size();
      if (names_ > kMaxNames) refuse_endless();
      todo_.push_back({value, std::move(name), separator});
    }
  }

  // The pairs of a dictionary. Python 2 calls OrderedDict with a list of lists [key, value].
  std::vector<Pair> pairs_of(const PickleNode& node) {
    std::vector<Pair> pairs;
    if (node.calls("collections.OrderedDict") && !node.items[1]->items.empty()) {
      for (const PickleNode* item : node.items[1]->items[0]->items) {
        count_pair();
        if (item->items.size() == 2) pairs.emplace_back(item->items[0], item->items[1]);
      }
    }
    for (const Pair& pair : node.pairs) {
      count_pair();
      pairs.push_back(pair);
    }
    return pairs;
  }

  // Visits the state of a module in a whole pickled model.
  void visit_module(const PickleNode& state, const std::string& path) {
    for (const char* part : {"_modules", "_buffers", "_parameters"}) {
      for (const auto& [key, value] : state.pairs) {
        count_pair();
        if (key->kind == Kind::kText && key->text == part) visit_pairs(*value, path, ".");
      }
    }
  }

  // Dictionaries may contain each other, or the same one many times, so every visit counts.
  void count_pair() {
    if (++visits_ > kMaxVisits) refuse_endless();
  }

  [[noreturn]] void refuse_endless() const {
    fail<InputError>("{}: its dictionaries refer to each other without end; save it again",
                     printable(file_.path));
  }

  bool add_tensor(const PickleNode& node, const std::string& path) {
    const PickleNode* at = &node;
    // Unwraps a tensor from the outside; each wrapper is one node deeper.
    for (std::size_t depth = 0; depth < kMaxTorchRank; ++depth) {
      if (at->kind == Kind::kStored && storages_.whole) {
        std::optional<StoredTensor> tensor = storages_.whole(*at);
        if (!tensor) return false;
        tensor->name = path;
        add(std::move(*tensor));
        return true;
      }
      if (at->kind != Kind::kCall || at->items[1]->kind != Kind::kTuple) return false;
      const std::vector<const PickleNode*>& arguments = at->items[1]->items;
      if (at->calls(kParameter) || at->calls(kParameterWithState) || at->calls(kParameterClass) ||
          at->calls(kFromCpu)) {
        if (arguments.empty()) return false;
        at = arguments[0];
      } else if (at->calls(kFromType)) {
        if (arguments.size() < 3 || arguments[2]->kind != Kind::kTuple) return false;
        if (arguments[0]->is_global(kRebuild)) {
          rebuild(arguments[2]->items, path);
        } else {
          left_.push_back(printable(path));
        }
        return true;
      } else if (at->calls(kRebuild) || at->calls(kRebuildFirst)) {
        rebuild(arguments, path);
        return true;
      } else if (std::ranges::any_of(kFromNumpy,
                                     [&](const char* call) { return at->calls(call); })) {
        fail<InputError>(
            "{}: tensor '{}' of another device was saved as an array of numpy; save it from the "
            "CPU: torch.save({{k: v.cpu() for k, v in model.state_dict().items()}}, FILE)",
            printable(file_.path), printable(path));
      } else if (at->items[0]->kind == Kind::kGlobal &&
                 at->items[0]->text.starts_with(kRebuildOther)) {
        left_.push_back(printable(path));
        return true;
      } else {
        return false;
      }
    }
    return false;
  }

  // Whether the view's bits, the seventh argument, hold {'neg': True}, as of x.conj().imag.
  bool is_negated(const std::vector<const PickleNode*>& arguments) {
    if (arguments.size() < 7) return false;
    return std::ranges::any_of(arguments[6]->pairs, [&](const Pair& bit) {
      count_pair();
      return bit.first->text == "neg" && bit.second->integer != 0;
    });
  }

  void rebuild(const std::vector<const PickleNode*>& arguments, const std::string& path) {
    const std::optional<std::int64_t> offset =
        arguments.size() < 4 ? std::nullopt : pickled_integer(*arguments[1]);
    if (!offset || arguments[0]->kind != Kind::kStored) {
      fail<InputError>("{}: tensor '{}' is made of no storage; save it again",
                       printable(file_.path), printable(path));
    }
    if (is_negated(arguments)) {
      fail<InputError>(
          "{}: tensor '{}' is a view that negates its values, which are stored without their sign; "
          "save tensor.resolve_neg()",
          printable(file_.path), printable(path));
    }
    if (const std::optional<TorchStorage> storage = storages_.find(*arguments[0])) {
      add(view_of(*storage, integers(*arguments[2], path, file_.path),
                  integers(*arguments[3], path, file_.path), *offset, path, file_.path));
    } else {
      left_.push_back(printable(path));
    }
  }

  void add(StoredTensor tensor) {
    if (file_.tensors.size() == kMaxTensors) {
      fail<InputError>("{}: holds more than {} tensors; save the weights alone",
                       printable(file_.path), kMaxTensors);
    }
    // Of two, Python's dictionary would keep the last.
    if (!tensors_.insert(tensor.name).second) {
      fail<InputError>("{}: holds the tensor {} twice; save it again", printable(file_.path),
                       in_quotes(tensor.name));
    }
    file_.tensors.push_back(std::move(tensor));
  }

  const TorchStorages& storages_;
  TensorFile& file_;
  std::vector<Place> todo_;
  std::size_t visits_ = 0;
  std::size_t names_ = 0;
  std::unordered_set<std::string> tensors_;  // their names
  std::vector<std::string> left_;
};

// "torch.float32" and so on, which say what type a tensor of another device has.
constexpr std::array<std::string_view, 5> kDtypes = {
    "torch.float32", "torch.float64", "torch.float16", "torch.bfloat16", "torch.int64"};

// Whether a file of plain weights may name this global.
bool expected_global(const std::string& name) {
  return name == "collections.OrderedDict" || name == kRebuild || name == kRebuildFirst ||
         name == kParameter || name == kParameterWithState || name == kParameterClass ||
         name == kFromType || name == kFromCpu || name == "torch.Size" ||
         std::ranges::find(kDtypes, name) != kDtypes.end() || torch_item_bytes(name).has_value();
}

}  // namespace

std::optional<ElementType> torch_element_type(const std::string& global) {
  for (const NamedType& named : kTypes) {
    if (is_class(global, named.name)) return named.type;
  }
  return std::nullopt;
}

std::optional<std::size_t> torch_item_bytes(const std::string& global) {
  if (const std::optional<ElementType> type = torch_element_type(global)) {
    return static_cast<std::size_t>(bits_of(*type) / 8);
  }
  for (const OtherType& other : kOtherTypes) {
    if (is_class(global, other.name)) return other.item_bytes;
  }
  if (std::ranges::find(kUntyped, global) != kUntyped.end()) return 1;
  return std::nullopt;
}

std::optional<std::int64_t> pickled_integer(const PickleNode& node) {
  if (node.kind != Kind::kInteger) return std::nullopt;
  return node.integer;
}

bool is_big_endian(const Pickle& sys_info) {
  for (const auto& [key, value] : sys_info.root().pairs) {
    if (key->text == "little_endian") return value->integer == 0;
  }
  return false;
}

StoredTensor view_of(const TorchStorage& storage, const std::vector<std::int64_t>& dims,
                     const std::vector<std::int64_t>& strides, std::int64_t offset,
                     const std::string& tensor, const std::string& file) {
  const auto item = static_cast<std::int64_t>(bits_of(storage.type) / 8);
  const std::int64_t held = static_cast<std::int64_t>(storage.bytes.size()) / item;
  bool fits = dims.size() == strides.size() && offset >= 0;
  std::int64_t elements = 1;
  std::int64_t last = offset;  // the position of the last element
  for (std::size_t axis = 0; fits && axis < dims.size(); ++axis) {
    std::int64_t reach = 0;
    fits =
        dims[axis] >= 0 && strides[axis] >= 0 &&
        !__builtin_mul_overflow(elements, dims[axis], &elements) &&
        !__builtin_mul_overflow(std::max<std::int64_t>(dims[axis] - 1, 0), strides[axis], &reach) &&
        !__builtin_add_overflow(last, reach, &last);
  }
  // Elements that occur more than once (an expanded tensor) need more memory than the file has.
  if (fits && elements > 0) fits = last < held && elements <= std::max<std::int64_t>(held, 1 << 20);
  if (!fits) {
    fail<InputError>(
        "{}: tensor '{}' of shape {} with strides {} from element {} on does not lie in its "
        "storage "
        "of {} elements; the file is damaged, download it again",
        printable(file), printable(tensor), shape_text(dims), shape_text(strides), offset, held);
  }
  StoredTensor out;
  out.name = tensor;
  out.type = storage.type;
  out.dims = dims;
  out.strides = strides;
  if (elements > 0) out.bytes = storage.bytes.subspan(static_cast<std::size_t>(offset * item));
  out.big_endian = storage.big_endian;
  out.owner = storage.owner;
  return out;
}

void collect_tensors(const Pickle& pickle, const TorchStorages& storages, TensorFile& file) {
  Walk(storages, file).run(pickle.root());
  std::vector<std::string> others;
  for (const std::string& name : pickle.globals()) {
    if (!expected_global(name)) others.push_back(printable(name));
  }
  if (others.empty()) return;
  constexpr std::size_t kMost = 8;
  const std::size_t count = others.size();
  others.resize(std::min(count, kMost));
  file.notes.push_back(fmt::format(
      "names {} not needed and {} not run: {}{}",
      count == 1 ? "a global that is" : fmt::format("{} globals that are", count),
      count == 1 ? "was" : "were", fmt::join(others, ", "), count > kMost ? ", ..." : ""));
}

}  // namespace rk
