// Reads one graph of an ONNX model into a builder: the main graph, the body of
// a function, or a subgraph of If, Loop or Scan, which sees the names of the
// graph around it.

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_GRAPH_READER_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_GRAPH_READER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/formats/onnx/graph_builder.h"
#include "engine/formats/onnx/model_context.h"
#include "onnx/onnx.pb.h"

namespace optfarm::formats {

class OnnxGraphReader {
 public:
  // A tensor of the graph around a subgraph that the subgraph reads.
  struct Capture {
    Endpoint outside;
    Endpoint inside;
  };

  // OWNERSHIP: all arguments outlive the reader. `outer` is the graph around a
  // subgraph; with another builder, what is read of it is captured. Nodes are
  // called "prefix...".
  OnnxGraphReader(OnnxModelContext* model, GraphBuilder* builder,
                  OnnxGraphReader* outer, std::string prefix)
      : model_(*model),
        builder_(*builder),
        outer_(outer),
        prefix_(std::move(prefix)),
        opsets_(outer == nullptr ? model->opsets() : outer->opsets_) {}
  OnnxGraphReader(const OnnxGraphReader&) = delete;
  OnnxGraphReader& operator=(const OnnxGraphReader&) = delete;

  OnnxModelContext& model() { return model_; }
  GraphBuilder& builder() { return builder_; }
  const std::string& prefix() const { return prefix_; }
  OnnxOpsets* mutable_opsets() { return &opsets_; }
  const std::vector<Capture>& captures() const { return captures_; }

  // Names that nodes may read. Nothing stands for what could not be made.
  void Define(const std::string& name, Endpoint tensor);
  bool IsInitializer(const std::string& name) const;
  // 4 for a value that the file declares as one of 4 bits, which the graph
  // keeps in 8; else 8.
  int BitsOf(const std::string& name) const;
  // ERRORS: InvalidArgument when nothing makes it.
  absl::StatusOr<Endpoint> Find(const std::string& name);

  // Reads initializers and nodes of `graph`, whose inputs are defined. What is
  // wrong becomes a reason of the model's.
  void ReadBody(const onnx::GraphProto& graph);
  // The body of a function with the caller's attributes.
  void ReadFunctionBody(const onnx::FunctionProto& function,
                        const onnx::NodeProto& caller);
  // The graph's outputs; a reason and nothing for those that nothing makes.
  std::vector<Endpoint> Results(const onnx::GraphProto& graph);

 private:
  void DefineInitializers(const onnx::GraphProto& graph);
  void LowerNode(const onnx::NodeProto& node);
  // False when an input could not be made.
  bool FindInputs(const onnx::NodeProto& node, std::vector<Endpoint>* inputs);
  absl::Status CallFunction(const onnx::FunctionProto& function,
                            const onnx::NodeProto& node,
                            const std::vector<Endpoint>& inputs,
                            std::vector<Endpoint>* outputs);
  void DefineOutputs(const onnx::NodeProto& node,
                     const std::vector<Endpoint>& outputs,
                     graph::NodeId first_new);
  Endpoint Captured(Endpoint outside);

  OnnxModelContext& model_;
  GraphBuilder& builder_;
  OnnxGraphReader* const outer_;
  const std::string prefix_;
  OnnxOpsets opsets_;
  absl::flat_hash_map<std::string, Endpoint> values_;
  // Inputs of a function that its caller leaves out.
  absl::flat_hash_set<std::string> absent_;
  // Made into nodes when they are first read.
  absl::flat_hash_map<std::string, const onnx::TensorProto*> initializers_;
  absl::flat_hash_map<std::string, const onnx::SparseTensorProto*> sparse_;
  // What the file says of values in between.
  absl::flat_hash_map<std::string, const onnx::TypeProto*> declared_;
  std::vector<Capture> captures_;
  int depth_ = 0;
};

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_GRAPH_READER_H_
