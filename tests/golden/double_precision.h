// A graph of floats computed in double precision: how far answers in single
// precision, TensorFlow's among them, are from the exact ones.

#ifndef OPTFARM_TESTS_GOLDEN_DOUBLE_PRECISION_H_
#define OPTFARM_TESTS_GOLDEN_DOUBLE_PRECISION_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/runtime/core/tensor.h"

namespace optfarm::testing {

inline runtime::Tensor ToDouble(const runtime::Tensor& tensor) {
  runtime::Tensor result =
      runtime::Tensor::Allocate(tensorflow::DT_DOUBLE, tensor.shape()).value();
  const auto from = tensor.flat<float>();
  std::copy(from.begin(), from.end(), result.data<double>());
  return result;
}

// Rewrites node by node, under the same names. Ops whose kernels know floats
// alone become others that mean the same: batch norms the arithmetic they are
// made of, depthwise convolutions those with a group for each channel. A
// ResizeBilinear, whose result is always float, stays and is widened.
class DoublePrecision {
 public:
  static graph::Graph Of(const graph::Graph& graph) {
    DoublePrecision rewritten(graph);
    // Nodes of a Graph keep their inputs elsewhere.
    const tensorflow::GraphDef def = graph.ToDef();
    for (const tensorflow::NodeDef& node : def.node()) {
      rewritten.Add(node);
    }
    return graph::Graph::FromDef(std::move(rewritten.out_)).value();
  }

 private:
  static constexpr tensorflow::DataType kDouble = tensorflow::DT_DOUBLE;
  static constexpr tensorflow::DataType kInt = tensorflow::DT_INT32;

  explicit DoublePrecision(const graph::Graph& graph) : graph_(graph) {}

  void Add(const tensorflow::NodeDef& node) {
    if (node.op() == "Const") return AddConst(node.name(), ValueOf(node));
    if (node.op() == "FusedBatchNorm") return AddBatchNorm(node);
    if (node.op() == "DepthwiseConv2dNative") return AddDepthwise(node);
    if (node.op() == "ResizeBilinear") return AddResize(node);
    Copy(node);
  }

  tensorflow::NodeDef* Copy(const tensorflow::NodeDef& node) {
    tensorflow::NodeDef* copy = out_.add_node();
    *copy = node;
    for (auto& [name, value] : *copy->mutable_attr()) {
      if (value.type() == tensorflow::DT_FLOAT) value.set_type(kDouble);
    }
    return copy;
  }

  tensorflow::NodeDef* New(const std::string& name, const std::string& op,
                           const std::vector<std::string>& inputs) {
    tensorflow::NodeDef* node = out_.add_node();
    node->set_name(name);
    node->set_op(op);
    for (const std::string& input : inputs) node->add_input(input);
    graph::SetType(node, "T", kDouble);
    return node;
  }

  static runtime::Tensor ValueOf(const tensorflow::NodeDef& node) {
    return runtime::Tensor::FromProto(*graph::GetTensor(node, "value").value())
        .value();
  }

  void AddConst(const std::string& name, const runtime::Tensor& value) {
    const runtime::Tensor used =
        value.dtype() == tensorflow::DT_FLOAT ? ToDouble(value) : value;
    tensorflow::NodeDef* node = out_.add_node();
    node->set_name(name);
    node->set_op("Const");
    graph::SetType(node, "dtype", used.dtype());
    *(*node->mutable_attr())["value"].mutable_tensor() = used.ToProto();
  }

  void AddBatchNorm(const tensorflow::NodeDef& node) {
    const std::string& name = node.name();
    const std::string& x = node.input(0);
    std::string mean = node.input(3);
    std::string variance = node.input(4);
    if (graph::GetBoolOr(node, "is_training", true).value()) {
      AddConst(name + "/axes",
               runtime::Tensor::FromValues<int32_t>({3}, {0, 1, 2}));
      mean = name + "/mean";
      variance = name + "/variance";
      graph::SetType(New(mean, "Mean", {x, name + "/axes"}), "Tidx", kInt);
      New(name + "/squares", "SquaredDifference", {x, mean});
      graph::SetType(New(variance, "Mean", {name + "/squares", name + "/axes"}),
                     "Tidx", kInt);
    }
    AddConst(name + "/epsilon",
             runtime::Tensor::Scalar<float>(
                 graph::GetFloatOr(node, "epsilon", 0.0001f).value()));
    New(name + "/shifted", "Add", {variance, name + "/epsilon"});
    New(name + "/root", "Rsqrt", {name + "/shifted"});
    New(name + "/factor", "Mul", {name + "/root", node.input(1)});
    New(name + "/centred", "Sub", {x, mean});
    New(name + "/scaled", "Mul", {name + "/centred", name + "/factor"});
    New(name, "Add", {name + "/scaled", node.input(2)});
  }

  // Filters h x w x c x m as h x w x 1 x cm.
  void AddDepthwise(const tensorflow::NodeDef& node) {
    graph::NodeId id = graph_.Find(node.input(1));
    while (graph_.node(id).op() == "Identity") {
      id = graph_.node(id).inputs()[0].node;
    }
    const runtime::Tensor filter = ValueOf(graph_.node(id).def());
    const std::string shape = node.name() + "/shape";
    const std::string grouped = node.name() + "/grouped";
    AddConst(shape,
             runtime::Tensor::FromValues<int32_t>(
                 {4}, {static_cast<int32_t>(filter.dim(0)),
                       static_cast<int32_t>(filter.dim(1)), 1,
                       static_cast<int32_t>(filter.dim(2) * filter.dim(3))}));
    graph::SetType(New(grouped, "Reshape", {node.input(1), shape}), "Tshape",
                   kInt);
    tensorflow::NodeDef* convolution = Copy(node);
    convolution->set_op("Conv2D");
    convolution->set_input(1, grouped);
  }

  void AddResize(const tensorflow::NodeDef& node) {
    const std::string narrow = node.name() + "/float";
    Copy(node)->set_name(narrow);
    tensorflow::NodeDef* wide = out_.add_node();
    wide->set_name(node.name());
    wide->set_op("Cast");
    wide->add_input(narrow);
    graph::SetType(wide, "SrcT", tensorflow::DT_FLOAT);
    graph::SetType(wide, "DstT", kDouble);
  }

  const graph::Graph& graph_;
  tensorflow::GraphDef out_;
};

}  // namespace optfarm::testing

#endif  // OPTFARM_TESTS_GOLDEN_DOUBLE_PRECISION_H_
