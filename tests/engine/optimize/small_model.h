// A small classifier made on the spot, for tests that need a whole model: input
// [?,8,8,1], one convolution with bias and relu, a dense layer of 64, one of 3
// classes, softmax. Each class answers to one third of the picture being
// bright.

#ifndef OPTFARM_TESTS_ENGINE_OPTIMIZE_SMALL_MODEL_H_
#define OPTFARM_TESTS_ENGINE_OPTIMIZE_SMALL_MODEL_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/files.h"
#include "engine/formats/samples/npy.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/tensor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::optimize::testing {

inline tensorflow::NodeDef* AddNode(tensorflow::GraphDef* graph,
                                    const std::string& name,
                                    const std::string& op,
                                    const std::vector<std::string>& inputs) {
  tensorflow::NodeDef* node = graph->add_node();
  node->set_name(name);
  node->set_op(op);
  for (const std::string& input : inputs) node->add_input(input);
  if (op != "Placeholder" && op != "Const") {
    graph::SetType(node, "T", tensorflow::DT_FLOAT);
  }
  return node;
}

inline void AddConst(tensorflow::GraphDef* graph, const std::string& name,
                     const runtime::Tensor& value) {
  tensorflow::NodeDef* node = AddNode(graph, name, "Const", {});
  graph::SetType(node, "dtype", value.dtype());
  *(*node->mutable_attr())["value"].mutable_tensor() = value.ToProto();
}

inline void SetInts(tensorflow::NodeDef* node, const std::string& name,
                    const std::vector<int64_t>& values) {
  auto* list = (*node->mutable_attr())[name].mutable_list();
  for (const int64_t value : values) list->add_i(value);
}

inline tensorflow::GraphDef SmallModel() {
  using runtime::Shape;
  using runtime::Tensor;
  tensorflow::GraphDef graph;
  tensorflow::NodeDef* input = AddNode(&graph, "input", "Placeholder", {});
  graph::SetType(input, "dtype", tensorflow::DT_FLOAT);
  auto* shape = (*input->mutable_attr())["shape"].mutable_shape();
  for (const int64_t dim : {-1, 8, 8, 1}) shape->add_dim()->set_size(dim);
  std::vector<float> filter(3 * 3 * 1 * 4, 0.1f);
  AddConst(&graph, "filter",
           Tensor::FromValues<float>(Shape({3, 3, 1, 4}), filter));
  tensorflow::NodeDef* conv =
      AddNode(&graph, "conv", "Conv2D", {"input", "filter"});
  SetInts(conv, "strides", {1, 1, 1, 1});
  graph::SetString(conv, "padding", "SAME");
  AddConst(&graph, "bias",
           Tensor::FromValues<float>(Shape({4}), {0.0f, 0.1f, 0.2f, 0.3f}));
  AddNode(&graph, "biased", "BiasAdd", {"conv", "bias"});
  AddNode(&graph, "relu", "Relu", {"biased"});
  AddConst(&graph, "flat_shape",
           Tensor::FromValues<int32_t>(Shape({2}), {-1, 256}));
  tensorflow::NodeDef* flat =
      AddNode(&graph, "flat", "Reshape", {"relu", "flat_shape"});
  graph::SetType(flat, "Tshape", tensorflow::DT_INT32);
  // Rows 0-2 of the picture speak for class 0, 3-4 for 1, 5-7 for 2; hidden
  // unit k stands for class k % 3.
  std::vector<float> hidden(256 * 64);
  for (int i = 0; i < 256; ++i) {
    const int row = i / 32;
    const int third = row < 3 ? 0 : (row < 5 ? 1 : 2);
    for (int k = 0; k < 64; ++k) {
      hidden[i * 64 + k] = k % 3 == third ? 0.02f : -0.01f;
    }
  }
  AddConst(&graph, "hidden_weights",
           Tensor::FromValues<float>(Shape({256, 64}), hidden));
  AddNode(&graph, "hidden", "MatMul", {"flat", "hidden_weights"});
  std::vector<float> weights(64 * 3);
  for (int i = 0; i < 64 * 3; ++i) {
    weights[i] = i / 3 % 3 == i % 3 ? 0.2f : -0.1f;
  }
  AddConst(&graph, "weights",
           Tensor::FromValues<float>(Shape({64, 3}), weights));
  AddNode(&graph, "scores", "MatMul", {"hidden", "weights"});
  AddNode(&graph, "softmax", "Softmax", {"scores"});
  graph.mutable_versions()->set_producer(24);
  return graph;
}

// Writes the model and returns its path.
inline std::string WriteModel(const tensorflow::GraphDef& graph,
                              const std::string& folder) {
  const std::string path = JoinPath(folder, "model.pb");
  OPTFARM_CHECK(formats::SaveGraphDef(graph, path).ok());
  return path;
}

// `count` pictures [count,1,8,8,1], the third of sample i that is i % 3 being
// bright, and their classes; returns the folder with x.npy and labels.npy.
inline std::string WriteSamples(int count, const std::string& folder) {
  using runtime::Shape;
  using runtime::Tensor;
  std::vector<float> pixels(count * 64, 0.0f);
  std::vector<int64_t> classes;
  for (int i = 0; i < count; ++i) {
    classes.push_back(i % 3);
    for (int row = 0; row < 8; ++row) {
      const int third = row < 3 ? 0 : (row < 5 ? 1 : 2);
      for (int column = 0; column < 8 && third == i % 3; ++column) {
        pixels[i * 64 + row * 8 + column] =
            0.5f + 0.05f * static_cast<float>((i + column) % 10);
      }
    }
  }
  OPTFARM_CHECK(formats::SaveNpy(Tensor::FromValues<float>(
                                     Shape({count, 1, 8, 8, 1}), pixels)
                                     .ToProto(),
                                 JoinPath(folder, "x.npy"))
                    .ok());
  OPTFARM_CHECK(
      formats::SaveNpy(
          Tensor::FromValues<int64_t>(Shape({count}), classes).ToProto(),
          JoinPath(folder, "labels.npy"))
          .ok());
  return folder;
}

}  // namespace optfarm::optimize::testing

#endif  // OPTFARM_TESTS_ENGINE_OPTIMIZE_SMALL_MODEL_H_
