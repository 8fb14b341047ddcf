// ONNX files as other programs read them: parsed by the schema's own classes, verified by ONNX's
// checker, and computed node by node in plain loops, independently of Rankine's network.
#include "engine/base/error.h"
#include "engine/base/text_of.h"
#include "layers/networks/network.h"
#include "tests/support/child_process.h"
#include "tests/support/goldens/golden_generator.h"
#include "tests/support/messages.h"
#include "tests/support/nchw.h"
#include "tests/support/random_seed.h"
#include "tests/support/stored_images.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/weights/torchvision.h"
#include "training/model_io.h"
#include "weights/architectures/registry.h"
#include "weights/foreign/weight_files.h"
#include "weights/onnx/file.h"
#include "weights/onnx/schema.h"

#include <onnx/checker.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

namespace rk {
namespace {

using golden::Generator;

struct Value {
  std::vector<std::int64_t> dims;
  std::vector<double> data;
};

// Computes a graph by the definitions of ONNX's operators.
class PlainGraph {
 public:
  explicit PlainGraph(const onnx::GraphProto& graph) : graph_(graph) {
    for (const onnx::TensorProto& tensor : graph.initializer()) {
      Value value{{tensor.dims().begin(), tensor.dims().end()}, {}};
      std::vector<float> floats(tensor.raw_data().size() / sizeof(float));
      std::memcpy(floats.data(), tensor.raw_data().data(), tensor.raw_data().size());
      value.data.assign(floats.begin(), floats.end());
      values_[tensor.name()] = value;
    }
  }

  Value run(const Value& images) {
    values_[graph_.input(0).name()] = images;
    for (const onnx::NodeProto& node : graph_.node()) values_[node.output(0)] = compute(node);
    return values_.at(graph_.output(0).name());
  }

 private:
  static std::vector<std::int64_t> integers(const onnx::NodeProto& node, const std::string& name) {
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.name() == name) return {attribute.ints().begin(), attribute.ints().end()};
    }
    ADD_FAILURE() << node.name() << " has no " << name;
    return {};
  }
  // The value of an optional attribute; 0 if it is missing.
  static std::int64_t integer(const onnx::NodeProto& node, const std::string& name) {
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.name() == name) return attribute.i();
    }
    return 0;
  }
  static double real(const onnx::NodeProto& node, const std::string& name) {
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.name() == name) return static_cast<double>(attribute.f());
    }
    ADD_FAILURE() << node.name() << " has no " << name;
    return 0;
  }
  const Value& in(const onnx::NodeProto& node, int i) const { return values_.at(node.input(i)); }

  // Calls f(image, output channel, y, x) for the upper left corner of every window.
  template <class F>
  static Value windows(const Value& x, std::int64_t channels, const onnx::NodeProto& node, F&& f) {
    const auto kernel = integers(node, "kernel_shape"), pads = integers(node, "pads"),
               strides = integers(node, "strides");
    const auto places = [&](std::size_t axis) {
      const std::int64_t room = x.dims[axis + 2] + pads[axis] + pads[axis + 2] - kernel[axis];
      const std::int64_t up = integer(node, "ceil_mode") == 1 ? strides[axis] - 1 : 0;
      return (room + up) / strides[axis] + 1;
    };
    const std::int64_t h = places(0), w = places(1);
    Value y{{x.dims[0], channels, h, w}, {}};
    for (std::int64_t n = 0; n < x.dims[0]; ++n) {
      for (std::int64_t c = 0; c < channels; ++c) {
        for (std::int64_t i = 0; i < h; ++i) {
          for (std::int64_t k = 0; k < w; ++k) {
            y.data.push_back(f(n, c, i * strides[0] - pads[0], k * strides[1] - pads[1]));
          }
        }
      }
    }
    return y;
  }
  static std::size_t place(const Value& x, std::int64_t n, std::int64_t c, std::int64_t y,
                           std::int64_t at) {
    return static_cast<std::size_t>(((n * x.dims[1] + c) * x.dims[2] + y) * x.dims[3] + at);
  }
  static bool inside(const Value& x, std::int64_t y, std::int64_t at) {
    return y >= 0 && at >= 0 && y < x.dims[2] && at < x.dims[3];
  }

  Value convolution(const onnx::NodeProto& node) const {
    const Value &x = in(node, 0), &weight = in(node, 1);
    const std::int64_t height = weight.dims[2], width = weight.dims[3];
    return windows(x, weight.dims[0], node,
                   [&](std::int64_t n, std::int64_t o, std::int64_t top, std::int64_t left) {
                     double sum = 0;
                     for (std::int64_t c = 0; c < x.dims[1]; ++c) {
                       for (std::int64_t i = 0; i < height; ++i) {
                         for (std::int64_t k = 0; k < width; ++k) {
                           if (!inside(x, top + i, left + k)) continue;
                           sum += x.data[place(x, n, c, top + i, left + k)] *
                                  weight.data[place(weight, o, c, i, k)];
                         }
                       }
                     }
                     return sum;
                   });
  }

  // The largest of a window's values, or their mean, in which padding counts as zeros.
  Value pool(const onnx::NodeProto& node) const {
    const Value& x = in(node, 0);
    const auto kernel = integers(node, "kernel_shape");
    const bool maximum = node.op_type() == "MaxPool";
    if (!maximum) {
      EXPECT_EQ(integer(node, "count_include_pad"), 1) << node.name();
      EXPECT_EQ(integer(node, "ceil_mode"), 0) << node.name();
    }
    return windows(x, x.dims[1], node,
                   [&](std::int64_t n, std::int64_t c, std::int64_t top, std::int64_t left) {
                     double most = -INFINITY, sum = 0;
                     for (std::int64_t i = 0; i < kernel[0]; ++i) {
                       for (std::int64_t k = 0; k < kernel[1]; ++k) {
                         if (!inside(x, top + i, left + k)) continue;
                         const double v = x.data[place(x, n, c, top + i, left + k)];
                         most = std::max(most, v);
                         sum += v;
                       }
                     }
                     return maximum ? most : sum / static_cast<double>(kernel[0] * kernel[1]);
                   });
  }

  Value concatenated(const onnx::NodeProto& node) const {
    EXPECT_EQ(integer(node, "axis"), 1) << node.name();
    Value y{in(node, 0).dims, {}};
    y.dims[1] = 0;
    for (int i = 0; i < node.input_size(); ++i) y.dims[1] += in(node, i).dims[1];
    for (std::int64_t n = 0; n < y.dims[0]; ++n) {
      for (int i = 0; i < node.input_size(); ++i) {
        const Value& x = in(node, i);
        const auto image = static_cast<std::ptrdiff_t>(x.data.size()) / x.dims[0];
        const auto begin = x.data.begin() + n * image;
        y.data.insert(y.data.end(), begin, begin + image);
      }
    }
    return y;
  }

  Value compute(const onnx::NodeProto& node) const {
    const std::string& op = node.op_type();
    if (op == "Conv") return convolution(node);
    if (op == "MaxPool" || op == "AveragePool") return pool(node);
    if (op == "Concat") return concatenated(node);
    const Value& x = in(node, 0);
    Value y = x;
    const auto each = [&](auto&& f) {
      for (std::size_t i = 0; i < y.data.size(); ++i) y.data[i] = f(x.data[i], i);
      return y;
    };
    if (op == "Relu") return each([](double v, std::size_t) { return std::max(v, 0.0); });
    if (op == "Add") {
      return each([&](double v, std::size_t i) { return v + in(node, 1).data[i]; });
    }
    if (op == "Clip") {
      return each([&](double v, std::size_t) { return std::max(v, in(node, 1).data[0]); });
    }
    if (op == "Pow") {
      // Rounded to the type of the graph, in which a power may be infinite or 0.
      return each([&](double v, std::size_t) {
        return static_cast<double>(static_cast<float>(std::pow(v, in(node, 1).data[0])));
      });
    }
    if (op == "BatchNormalization") {
      const std::int64_t plane = x.dims[2] * x.dims[3];
      return each([&](double v, std::size_t i) {
        const std::size_t c =
            i / static_cast<std::size_t>(plane) % static_cast<std::size_t>(x.dims[1]);
        return (v - in(node, 3).data[c]) / std::sqrt(in(node, 4).data[c] + real(node, "epsilon")) *
                   in(node, 1).data[c] +
               in(node, 2).data[c];
      });
    }
    const std::int64_t rows = x.dims[0];
    const std::size_t row = x.data.size() / static_cast<std::size_t>(rows);
    if (op == "Flatten") {
      EXPECT_EQ(integer(node, "axis"), 1);
      y.dims = {rows, static_cast<std::int64_t>(row)};
      return y;
    }
    if (op == "Div" || op == "Mul") {
      const Value& by = in(node, 1);  // a value for each row or plane of x
      const std::size_t shared = x.data.size() / by.data.size();
      return each([&](double v, std::size_t i) {
        return op == "Div" ? v / by.data[i / shared] : v * by.data[i / shared];
      });
    }
    y = {{rows}, {}};
    if (op == "GlobalAveragePool" || op == "GlobalMaxPool") {
      const auto plane = static_cast<std::size_t>(x.dims[2] * x.dims[3]);
      y.dims = {rows, x.dims[1], 1, 1};
      for (std::size_t i = 0; i < x.data.size(); i += plane) {
        double sum = 0, most = -INFINITY;
        for (std::size_t k = i; k < i + plane; ++k) {
          sum += x.data[k];
          most = std::max(most, x.data[k]);
        }
        y.data.push_back(op == "GlobalMaxPool" ? most : sum / static_cast<double>(plane));
      }
    } else if (op == "ReduceL2") {
      EXPECT_EQ(integers(node, "axes"), std::vector<std::int64_t>{1});
      EXPECT_EQ(integer(node, "keepdims"), 1);
      for (std::size_t i = 0; i < x.data.size(); i += row) {
        double sum = 0;
        for (std::size_t k = i; k < i + row; ++k) sum += x.data[k] * x.data[k];
        y.data.push_back(std::sqrt(sum));
      }
      y.dims = {rows, 1};
    } else if (op == "Gemm") {
      EXPECT_EQ(integer(node, "transB"), 1);
      const Value &weight = in(node, 1), &bias = in(node, 2);
      y.dims = {rows, weight.dims[0]};
      for (std::size_t n = 0; n < static_cast<std::size_t>(rows); ++n) {
        for (std::size_t o = 0; o < bias.data.size(); ++o) {
          double sum = bias.data[o];
          for (std::size_t k = 0; k < row; ++k) {
            sum += x.data[n * row + k] * weight.data[o * row + k];
          }
          y.data.push_back(sum);
        }
      }
    } else {
      ADD_FAILURE() << "an unexpected operator " << op;
    }
    return y;
  }

  const onnx::GraphProto& graph_;
  std::map<std::string, Value> values_;
};

// The smallest images at which every part of the network matters: the last blocks of ResNets and of
// Inception-v3 are 2 x 2, so that strides count and 1x3 and 3x1 kernels differ, and GoogLeNet's
// poolings round up.
std::int64_t image_side(const std::string& arch) {
  return arch == "inception_v3" ? 107 : arch == "googlenet" ? 64 : 33;
}

// A generated network with an embedding layer of `dim` (0: none).
NetworkWeights generated(const std::string& arch, std::int64_t dim, const Generator& generator) {
  NetworkWeights weights;
  weights.model.arch = arch;
  weights.model.dim = dim;
  weights.model.resize = weights.model.crop = image_side(arch);
  const auto add = [&](const std::string& name, const std::vector<std::int64_t>& dims) {
    const auto values = std::make_shared<std::vector<float>>(generator.tensor(name, dims));
    weights.tensors.push_back({name, dims, *values, 0, values});
  };
  std::int64_t features = 0;
  for (const golden::NamedShape& tensor : golden::torchvision_network(arch)) {
    if (tensor.name == "fc.weight") features = tensor.dims[1];
    if (tensor.dims.empty()) {
      weights.tensors.push_back({tensor.name, {}, {}, 3, nullptr});
    } else {
      add(tensor.name, tensor.dims);
    }
  }
  if (dim > 0) {
    add("embedding.weight", {dim, features});
    add("embedding.bias", {dim});
  }
  return weights;
}

onnx::ModelProto parsed(std::span<const std::byte> bytes) {
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
  return model;
}

// Rankine's embeddings of the same images [n, 3, crop, crop].
std::vector<float> ours(const NetworkWeights& weights, const std::vector<float>& images,
                        std::int64_t n) {
  const std::int64_t side = weights.model.crop;
  const Context context(1);
  Parameters parameters;
  Program program(context, parameters, {});
  const Network network =
      build_network(program, network_spec(weights.model, BatchNormMode::kRunning), n, side, side);
  program.plan();
  load_parameters(Checkpoint("made here", checkpoint_bytes(weights)), parameters);
  std::ranges::copy(as_stored(program, network.input, nchw_to_nhwc(images, 3, side * side)),
                    program.value(network.input));
  program.forward();
  return program.read(network.embeddings);
}

struct Case {
  std::string arch, pool;
  std::int64_t dim;
  bool stride_in_1x1;
  double gem_p = 3;
};

void expect_same_embeddings(const Case& of, const Generator& generator) {
  SCOPED_TRACE(fmt::format("{} {} {} {}", of.arch, of.pool, of.dim, of.stride_in_1x1));
  NetworkWeights weights = generated(of.arch, of.dim, generator);
  weights.model.pool = of.pool;
  weights.model.stride_in_1x1 = of.stride_in_1x1;
  weights.model.gem_p = of.gem_p;
  const std::vector<std::byte> bytes = onnx_bytes(weights);
  const onnx::ModelProto model = parsed(bytes);
  EXPECT_NO_THROW(onnx::checker::check_model(model));
  const std::int64_t side = weights.model.crop;
  const std::vector<float> images = generator.images("onnx", 2, side, side);
  Value in{{2, 3, side, side}, {images.begin(), images.end()}};
  const Value out = PlainGraph(model.graph()).run(in);
  const std::vector<float> wanted = ours(weights, images, 2);
  ASSERT_EQ(out.data.size(), wanted.size());
  // The golden files' tolerance for a float32 forward value of such a network is 3e-6 of its norm,
  // which is 1 here; single values of two images may deviate by three times that.
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_NEAR(out.data[i], static_cast<double>(wanted[i]), 1e-5) << i;
  }
}

TEST(OnnxExport, ComputesTheEmbeddingsOfResNets) {
  const Generator generator{.salt = fmt::format("{} ", random_seed())};
  expect_same_embeddings({"resnet20", "avg", 24, false}, generator);
  expect_same_embeddings({"resnet18", "avg", 24, false}, generator);
  expect_same_embeddings({"resnet18", "max", 0, false}, generator);
  expect_same_embeddings({"resnet18", "gem", 7, false}, generator);
  expect_same_embeddings({"resnet20", "gem", 0, false, 100}, generator);
  const Generator bottlenecks{.bottleneck = true, .salt = generator.salt};
  expect_same_embeddings({"resnet50", "avg", 16, false}, bottlenecks);
  expect_same_embeddings({"resnet50", "avg", 0, true}, bottlenecks);
}

TEST(OnnxExport, ComputesTheEmbeddingsOfGoogLeNet) {
  const Generator generator{.salt = fmt::format("{} ", random_seed())};
  expect_same_embeddings({"googlenet", "avg", 24, false}, generator);
  expect_same_embeddings({"googlenet", "gem", 0, false}, generator);
}

TEST(OnnxExport, ComputesTheEmbeddingsOfInception) {
  const Generator generator{.salt = fmt::format("{} ", random_seed())};
  expect_same_embeddings({"inception_v3", "avg", 24, false}, generator);
}

// Every network of the registry must have a graph that holds all of its weights.
TEST(OnnxExport, OfEveryNetwork) {
  for (const std::string& arch : network_names()) {
    SCOPED_TRACE(arch);
    const NetworkWeights weights = generated(arch, 8, {});
    const std::vector<std::byte> bytes = onnx_bytes(weights);
    check_onnx(bytes, weights, "it");
    const onnx::ModelProto model = parsed(bytes);
    std::map<std::string, int> ops;
    for (const onnx::NodeProto& node : model.graph().node()) ++ops[node.op_type()];
    const auto convolutions = std::ranges::count_if(
        weights.tensors, [](const auto& tensor) { return tensor.dims.size() == 4; });
    EXPECT_EQ(ops["Conv"], convolutions);
    EXPECT_EQ(ops["BatchNormalization"], convolutions);
  }
}

TEST(OnnxExport, TooLargeAFileIsRefused) {
  const NetworkWeights weights = generated("resnet20", 8, {});
  const std::size_t bytes = onnx_bytes(weights).size();
  EXPECT_EQ(onnx_bytes(weights, bytes).size(), bytes);
  EXPECT_EQ(message_of<UsageError>([&] { onnx_bytes(weights, bytes - 1); }),
            "--to onnx: takes 1 MiB, and one ONNX file holds 2; write safetensors");
  EXPECT_EQ(kMostOnnxBytes, 0x7fffffffU);
}

TEST(OnnxExport, SaysWhatItIs) {
  const NetworkWeights weights = generated("resnet50", 16, {.bottleneck = true});
  const std::vector<std::byte> bytes = onnx_bytes(weights);
  const onnx::ModelProto model = parsed(bytes);
  EXPECT_EQ(model.ir_version(), 8);
  ASSERT_EQ(model.opset_import_size(), 1);
  EXPECT_EQ(model.opset_import(0).version(), 17);
  EXPECT_EQ(model.doc_string(), "images: " + std::string("RGB pixels / 255, less the mean 0.485 ") +
                                    "0.456 0.406, / 0.229 0.224 0.225; short side 33, bilinear "
                                    "with antialiasing, centre crop 33");
  EXPECT_EQ(model.metadata_props(0).key(), "rankine");
  const onnx::GraphProto& graph = model.graph();
  const auto shape = [](const onnx::ValueInfoProto& value) {
    std::string text = value.name();
    for (const auto& dim : value.type().tensor_type().shape().dim()) {
      text += ' ' + (dim.has_dim_param() ? dim.dim_param() : std::to_string(dim.dim_value()));
    }
    return text;
  };
  ASSERT_EQ(graph.input_size(), 1);
  ASSERT_EQ(graph.output_size(), 1);
  EXPECT_EQ(shape(graph.input(0)), "images batch 3 33 33");
  EXPECT_EQ(shape(graph.output(0)), "embeddings batch 16");
  std::map<std::string, int> ops;
  for (const onnx::NodeProto& node : graph.node()) ++ops[node.op_type()];
  EXPECT_EQ(ops["Conv"], 53);
  EXPECT_EQ(ops["BatchNormalization"], 53);
  EXPECT_EQ(ops["Add"], 16);
  EXPECT_EQ(ops["Relu"], 49);
  EXPECT_EQ(ops["Gemm"], 1);
  // The graph must hold all weights but counters and the classifier, bit for bit.
  std::size_t equal = 0;
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    const NetworkWeights::Tensor* wanted = weights.find(tensor.name());
    if (wanted == nullptr) continue;
    EXPECT_EQ((std::vector<std::int64_t>{tensor.dims().begin(), tensor.dims().end()}),
              wanted->dims);
    const bool same =
        tensor.raw_data().size() == wanted->values.size_bytes() &&
        std::memcmp(tensor.raw_data().data(), wanted->values.data(), tensor.raw_data().size()) == 0;
    EXPECT_TRUE(same) << tensor.name();
    ++equal;
  }
  EXPECT_EQ(equal, 53U * 5 + 2);
  EXPECT_EQ(graph.initializer_size(), 53 * 5 + 2 + 1);  // the last: the least norm
  check_onnx(bytes, weights, "it");
  std::vector<std::byte> changed = bytes;
  changed[changed.size() / 2] ^= std::byte{1};
  EXPECT_TRUE(holds(message_of<InputError>([&] { check_onnx(changed, weights, "it"); }), "it: "));
}

TEST(OnnxExport, TheProgramWritesIt) {
  const TemporaryFolder folder;
  const std::string in = folder.in("r.h5"), out = folder.in("r.onnx");
  const NetworkWeights weights = generated("googlenet", 0, {});
  folder.write("r.h5", checkpoint_bytes(weights));
  const auto convert = [&](const std::string& to) {
    return run_to_end({RK_BIN "/convert", in, to, "--device", "cpu"}, folder.path().string());
  };
  const Finished done = convert(out);
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(holds(done.out, "ONNX graph"));
  EXPECT_TRUE(holds(done.out, "read again and equal"));
  EXPECT_NO_THROW(onnx::checker::check_model(parsed(bytes_of(file_text(out)))));
  // It may replace its own file, never a user's.
  EXPECT_EQ(convert(out).code, 0);
  folder.write("other.onnx", "mine");
  EXPECT_EQ(convert(folder.in("other.onnx")).code, 3);
}

}  // namespace
}  // namespace rk
