// Building a graph of a few nodes and running it in a test:
//   GraphMaker g;
//   g.Placeholder("x", tensorflow::DT_FLOAT).Const("two", Float(2));
//   g.Node("y", "Mul", {"x", "two"}).Type("T", tensorflow::DT_FLOAT);
//   OPTFARM_ASSERT_OK_AND_ASSIGN(auto session, g.Session("x", "y"));

#ifndef OPTFARM_TESTS_ENGINE_RUNTIME_GRAPH_MAKER_H_
#define OPTFARM_TESTS_ENGINE_RUNTIME_GRAPH_MAKER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/tensor_name.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/session/session.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::runtime {

class GraphMaker {
 public:
  // A node that is begun; its attributes follow. Most ops here are on floats.
  class NodeMaker {
   public:
    explicit NodeMaker(tensorflow::NodeDef* node) : node_(node) {}
    NodeMaker& Type(const char* name, DataType value) {
      graph::SetType(node_, name, value);
      return *this;
    }
    NodeMaker& Types(const char* name, const std::vector<DataType>& values) {
      auto* list = (*node_->mutable_attr())[name].mutable_list();
      for (DataType value : values) list->add_type(value);
      return *this;
    }
    NodeMaker& Int(const char* name, int64_t value) {
      graph::SetInt(node_, name, value);
      return *this;
    }
    NodeMaker& Ints(const char* name, const std::vector<int64_t>& values) {
      auto* list = (*node_->mutable_attr())[name].mutable_list();
      for (int64_t value : values) list->add_i(value);
      return *this;
    }
    NodeMaker& Bool(const char* name, bool value) {
      graph::SetBool(node_, name, value);
      return *this;
    }
    NodeMaker& Text(const char* name, const std::string& value) {
      graph::SetString(node_, name, value);
      return *this;
    }
    NodeMaker& Function(const char* name, const std::string& function) {
      (*node_->mutable_attr())[name].mutable_func()->set_name(function);
      return *this;
    }
    NodeMaker& Shape(const char* name, const std::vector<int64_t>& dims) {
      auto* shape = (*node_->mutable_attr())[name].mutable_shape();
      for (int64_t dim : dims) shape->add_dim()->set_size(dim);
      return *this;
    }

   private:
    tensorflow::NodeDef* node_;
  };

  NodeMaker Node(const std::string& name, const std::string& op,
                 const std::vector<std::string>& inputs = {}) {
    tensorflow::NodeDef* node = def_.add_node();
    node->set_name(name);
    node->set_op(op);
    for (const std::string& input : inputs) node->add_input(input);
    return NodeMaker(node);
  }
  GraphMaker& Placeholder(const std::string& name, DataType dtype) {
    Node(name, "Placeholder").Type("dtype", dtype);
    return *this;
  }
  GraphMaker& Const(const std::string& name, const Tensor& value,
                    const std::vector<std::string>& inputs = {}) {
    Node(name, "Const", inputs).Type("dtype", value.dtype());
    auto* node = def_.mutable_node(def_.node_size() - 1);
    *(*node->mutable_attr())["value"].mutable_tensor() = value.ToProto();
    return *this;
  }
  // The constants NAME_min and NAME_max.
  GraphMaker& ConstRange(const std::string& name, float min, float max) {
    return Const(name + "_min", Tensor::Scalar(min))
        .Const(name + "_max", Tensor::Scalar(max));
  }
  // A binary or unary op of one type.
  GraphMaker& Math(const std::string& name, const std::string& op,
                   const std::vector<std::string>& inputs,
                   DataType type = tensorflow::DT_FLOAT) {
    Node(name, op, inputs).Type("T", type);
    return *this;
  }

  GraphMaker& Enter(const std::string& name, const std::string& input,
                    const std::string& frame,
                    DataType type = tensorflow::DT_FLOAT,
                    bool is_constant = false) {
    Node(name, "Enter", {input})
        .Type("T", type)
        .Text("frame_name", frame)
        .Bool("is_constant", is_constant);
    return *this;
  }
  // The variable `name` of a loop: name/enter, name/merge, name/switch (whose
  // output 1 is the body's), name/next, which takes `next`, and name/exit.
  GraphMaker& LoopVariable(const std::string& name, const std::string& initial,
                           const std::string& frame, const std::string& cond,
                           const std::string& next,
                           DataType type = tensorflow::DT_FLOAT) {
    Enter(name + "/enter", initial, frame, type);
    Node(name + "/merge", "Merge", {name + "/enter", name + "/next"})
        .Type("T", type)
        .Int("N", 2);
    Node(name + "/switch", "Switch", {name + "/merge", cond}).Type("T", type);
    Node(name + "/next", "NextIteration", {next}).Type("T", type);
    Node(name + "/exit", "Exit", {name + "/switch"}).Type("T", type);
    return *this;
  }

  tensorflow::GraphDef* def() { return &def_; }
  absl::StatusOr<graph::Graph> Graph() const {
    return graph::Graph::FromDef(def_);
  }
  absl::StatusOr<std::unique_ptr<runtime::Session>> Session(
      const std::string& feeds, const std::string& fetches,
      const SessionOptions& options = {}) const {
    auto graph = Graph();
    if (!graph.ok()) return graph.status();
    return runtime::Session::Create(*graph, *graph::ParseTensorNames(feeds),
                                    *graph::ParseTensorNames(fetches), options);
  }

 private:
  tensorflow::GraphDef def_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_TESTS_ENGINE_RUNTIME_GRAPH_MAKER_H_
