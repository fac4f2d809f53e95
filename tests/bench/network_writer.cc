#include "tests/bench/network_writer.h"

#include <cmath>
#include <utility>

#include "engine/graph/attr.h"

namespace optfarm::bench {

using graph::SetString;
using tensorflow::NodeDef;

void SetInts(NodeDef* node, const std::string& attr,
             const std::vector<int64_t>& values) {
  auto* list = (*node->mutable_attr())[attr].mutable_list();
  for (int64_t value : values) list->add_i(value);
}

namespace {

tensorflow::TensorProto* SetTensor(NodeDef* node,
                                   const std::vector<int64_t>& shape,
                                   tensorflow::DataType dtype) {
  graph::SetType(node, "dtype", dtype);
  auto* tensor = (*node->mutable_attr())["value"].mutable_tensor();
  tensor->set_dtype(dtype);
  tensor->mutable_tensor_shape();
  for (int64_t dim : shape) {
    tensor->mutable_tensor_shape()->add_dim()->set_size(dim);
  }
  return tensor;
}

// The spread of uniform weights that keeps the size of activations through a
// rectifier: variance 2 / fan_in.
float WeightSpread(int64_t fan_in) {
  return std::sqrt(6.0f / static_cast<float>(fan_in));
}

}  // namespace

// xorshift64*: short, and the same everywhere.
float NetworkWriter::Uniform() {
  random_ ^= random_ >> 12;
  random_ ^= random_ << 25;
  random_ ^= random_ >> 27;
  const uint64_t bits = random_ * 2685821657736338717ull;
  return static_cast<float>(bits >> 40) / static_cast<float>(1 << 23) - 1.0f;
}

NodeDef* NetworkWriter::Node(const std::string& name, const std::string& op,
                             const std::vector<std::string>& inputs) {
  NodeDef* node = graph_.add_node();
  node->set_name(name);
  node->set_op(op);
  for (const std::string& input : inputs) node->add_input(input);
  const bool is_source = op == "Const" || op == "Placeholder";
  graph::SetType(node, is_source ? "dtype" : "T", tensorflow::DT_FLOAT);
  return node;
}

void NetworkWriter::Placeholder(const std::string& name,
                                const std::vector<int64_t>& shape) {
  auto* proto =
      (*Node(name, "Placeholder", {})->mutable_attr())["shape"].mutable_shape();
  for (int64_t dim : shape) proto->add_dim()->set_size(dim);
}

void NetworkWriter::Floats(const std::string& name,
                           const std::vector<int64_t>& shape, float mean,
                           float spread) {
  int64_t count = 1;
  for (int64_t dim : shape) count *= dim;
  std::string* bytes =
      SetTensor(Node(name, "Const", {}), shape, tensorflow::DT_FLOAT)
          ->mutable_tensor_content();
  bytes->resize(static_cast<size_t>(count) * sizeof(float));
  // std::string's buffer is aligned for every type.
  auto* values = reinterpret_cast<float*>(bytes->data());
  for (int64_t i = 0; i < count; ++i) values[i] = mean + spread * Uniform();
}

void NetworkWriter::Ints(const std::string& name,
                         const std::vector<int64_t>& shape,
                         const std::vector<int32_t>& values) {
  auto* tensor =
      SetTensor(Node(name, "Const", {}), shape, tensorflow::DT_INT32);
  for (int32_t value : values) tensor->add_int_val(value);
}

std::string NetworkWriter::Variable(const std::string& name,
                                    const std::vector<int64_t>& shape,
                                    float mean, float spread) {
  Floats(name, shape, mean, spread);
  Node(name + "/read", "Identity", {name});
  return name + "/read";
}

Layer NetworkWriter::Convolution(const std::string& name,
                                 const std::string& weights, const Layer& input,
                                 const ConvolutionShape& shape) {
  const std::string read = Variable(
      weights, {shape.height, shape.width, input.channels, shape.filters}, 0,
      WeightSpread(shape.height * shape.width * input.channels));
  NodeDef* node = Node(name, "Conv2D", {input.name, read});
  SetInts(node, "strides", {1, shape.stride, shape.stride, 1});
  SetString(node, "padding", shape.padding);
  return {name, shape.filters};
}

Layer NetworkWriter::Depthwise(const std::string& name,
                               const std::string& weights, const Layer& input,
                               const ConvolutionShape& shape) {
  const std::string read =
      Variable(weights, {shape.height, shape.width, input.channels, 1}, 0,
               WeightSpread(shape.height * shape.width));
  NodeDef* node = Node(name, "DepthwiseConv2dNative", {input.name, read});
  SetInts(node, "strides", {1, shape.stride, shape.stride, 1});
  SetString(node, "padding", shape.padding);
  return {name, input.channels};
}

Layer NetworkWriter::Pool(const std::string& name, const std::string& op,
                          const Layer& input, int64_t size, int64_t stride,
                          const std::string& padding) {
  NodeDef* node = Node(name, op, {input.name});
  SetInts(node, "ksize", {1, size, size, 1});
  SetInts(node, "strides", {1, stride, stride, 1});
  SetString(node, "padding", padding);
  return {name, input.channels};
}

Layer NetworkWriter::FusedBatchNorm(const std::string& name,
                                    const std::string& scope,
                                    const Layer& input, float gain) {
  const std::vector<int64_t> shape = {input.channels};
  const std::string gamma =
      Variable(scope + "/gamma", shape, gain, 0.2f * gain);
  const std::string beta = Variable(scope + "/beta", shape, 0, 0.1f);
  const std::string mean = Variable(scope + "/moving_mean", shape, 0, 0.1f);
  const std::string variance =
      Variable(scope + "/moving_variance", shape, 1, 0.5f);
  NodeDef* node =
      Node(name, "FusedBatchNorm", {input.name, gamma, beta, mean, variance});
  graph::SetFloat(node, "epsilon", 0.001f);
  graph::SetBool(node, "is_training", false);
  return {name, input.channels};
}

}  // namespace optfarm::bench
