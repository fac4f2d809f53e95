// Small graphs for tests, written node by node:
//
//   GraphBuilder b;
//   b.Placeholder("in", {1, 4, 4, 2});
//   b.Floats("w", {1, 1, 2, 3}, {1, 2, 3, 4, 5, 6});
//   b.Conv2D("c", "in", "w");
//   graph::Graph graph = b.Build();

#ifndef OPTFARM_TESTS_SUPPORT_GRAPH_BUILDER_H_
#define OPTFARM_TESTS_SUPPORT_GRAPH_BUILDER_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/graph.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::testing {

inline tensorflow::AttrValue TypeAttr(tensorflow::DataType type) {
  tensorflow::AttrValue value;
  value.set_type(type);
  return value;
}
inline tensorflow::AttrValue StringAttr(const std::string& text) {
  tensorflow::AttrValue value;
  value.set_s(text);
  return value;
}
inline tensorflow::AttrValue IntAttr(int64_t number) {
  tensorflow::AttrValue value;
  value.set_i(number);
  return value;
}
inline tensorflow::AttrValue FloatAttr(float number) {
  tensorflow::AttrValue value;
  value.set_f(number);
  return value;
}
inline tensorflow::AttrValue BoolAttr(bool flag) {
  tensorflow::AttrValue value;
  value.set_b(flag);
  return value;
}
inline tensorflow::AttrValue IntsAttr(const std::vector<int64_t>& numbers) {
  tensorflow::AttrValue value;
  value.mutable_list();
  for (int64_t number : numbers) value.mutable_list()->add_i(number);
  return value;
}

using Attrs = std::map<std::string, tensorflow::AttrValue>;

// Attribute T = float, which most ops have.
inline Attrs FloatT(Attrs others = {}) {
  others["T"] = TypeAttr(tensorflow::DT_FLOAT);
  return others;
}

class GraphBuilder {
 public:
  // Inputs as in a GraphDef: "x", "x:1", "^x".
  tensorflow::NodeDef& Node(const std::string& name, const std::string& op,
                            const std::vector<std::string>& inputs,
                            const Attrs& attrs = {}) {
    tensorflow::NodeDef* node = def_.add_node();
    node->set_name(name);
    node->set_op(op);
    for (const std::string& input : inputs) node->add_input(input);
    for (const auto& [key, value] : attrs) (*node->mutable_attr())[key] = value;
    return *node;
  }

  void Placeholder(const std::string& name, const std::vector<int64_t>& shape,
                   tensorflow::DataType type = tensorflow::DT_FLOAT) {
    tensorflow::AttrValue shape_attr;
    shape_attr.mutable_shape();
    for (int64_t size : shape) {
      shape_attr.mutable_shape()->add_dim()->set_size(size);
    }
    Node(name, "Placeholder", {},
         {{"dtype", TypeAttr(type)}, {"shape", shape_attr}});
  }

  void Floats(const std::string& name, const std::vector<int64_t>& shape,
              const std::vector<float>& values) {
    tensorflow::TensorProto* tensor = Const(name, shape, tensorflow::DT_FLOAT);
    for (float value : values) tensor->add_float_val(value);
  }

  void Ints(const std::string& name, const std::vector<int64_t>& shape,
            const std::vector<int32_t>& values) {
    tensorflow::TensorProto* tensor = Const(name, shape, tensorflow::DT_INT32);
    for (int32_t value : values) tensor->add_int_val(value);
  }

  tensorflow::NodeDef& Conv2D(const std::string& name, const std::string& input,
                              const std::string& weights,
                              int64_t vertical_stride = 1,
                              int64_t horizontal_stride = 1) {
    return Node(name, "Conv2D", {input, weights},
                FloatT({{"strides",
                         IntsAttr({1, vertical_stride, horizontal_stride, 1})},
                        {"padding", StringAttr("SAME")}}));
  }

  const tensorflow::GraphDef& def() const { return def_; }
  tensorflow::GraphDef* mutable_def() { return &def_; }

  graph::Graph Build() const {
    absl::StatusOr<graph::Graph> graph = graph::Graph::FromDef(def_);
    EXPECT_TRUE(graph.ok()) << graph.status();
    return *std::move(graph);
  }

 private:
  tensorflow::TensorProto* Const(const std::string& name,
                                 const std::vector<int64_t>& shape,
                                 tensorflow::DataType type) {
    tensorflow::NodeDef& node =
        Node(name, "Const", {}, {{"dtype", TypeAttr(type)}});
    tensorflow::TensorProto* tensor =
        (*node.mutable_attr())["value"].mutable_tensor();
    tensor->set_dtype(type);
    tensor->mutable_tensor_shape();
    for (int64_t size : shape) {
      tensor->mutable_tensor_shape()->add_dim()->set_size(size);
    }
    return tensor;
  }

  tensorflow::GraphDef def_;
};

}  // namespace optfarm::testing

#endif  // OPTFARM_TESTS_SUPPORT_GRAPH_BUILDER_H_
