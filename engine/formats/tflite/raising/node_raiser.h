// One node of a graph, as a row of the raising table sees it: tensors of its
// inputs, what follows and may be fused, and a way to emit operators.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_NODE_RAISER_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_NODE_RAISER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "engine/formats/tflite/raising/graph_view.h"
#include "engine/formats/tflite/raising/model_draft.h"
#include "engine/formats/tflite/raising/raised_tensors.h"
#include "engine/graph/graph.h"
#include "engine/graph/partial_shape.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::formats::tflite_raising {

// Which scales the output of an operator on quantized values may have.
enum class ScaleRule : uint8_t {
  kFloatOnly,     // There is no such operator.
  kFree,          // Any.
  kSame,          // Those of the input.
  kDataMovement,  // Those of the input; elements are moved, not computed.
  kFixed,         // One that the format prescribes.
};

struct LayerRequest {
  ScaleRule rule = ScaleRule::kFloatOnly;
  // Tensors of the graph that the operator computes with.
  std::vector<graph::Endpoint> inputs;
  // A constant vector that is added behind belongs to the operator.
  bool takes_bias = false;
  bool takes_activation = false;
  // Of ScaleRule::kFixed.
  Quantization fixed;
};

// What is raised together: a node, what is fused behind it, and the tensors
// that it reads.
struct Layer {
  // Where the fused operator's result comes out.
  graph::Endpoint end;
  Activation activation = Activation::kNone;
  std::optional<graph::Endpoint> bias;
  // The nodes behind that are fused.
  std::vector<graph::NodeId> fused;
  bool is_quantized = false;
  // Of the output, when quantized.
  Quantization scales;
  tflite::TensorType type{};
  // Of the requested inputs.
  std::vector<TensorId> inputs;
};

class NodeRaiser {
 public:
  // What raised nodes have fused goes into `raised`. OWNERSHIP: all outlive
  // the raiser.
  NodeRaiser(RaisedTensors* tensors, absl::flat_hash_set<graph::NodeId>* raised,
             graph::NodeId id, tflite::BuiltinOperator builtin, ScaleRule rule)
      : tensors_(*tensors),
        raised_(*raised),
        id_(id),
        builtin_(builtin),
        rule_(rule) {}

  // The row's own.
  tflite::BuiltinOperator builtin() const { return builtin_; }
  ScaleRule rule() const { return rule_; }

  const graph::Node& node() const { return view().graph().node(id_); }
  const tensorflow::NodeDef& def() const { return node().def(); }
  const GraphView& view() const { return tensors_.view(); }
  RaisedTensors& tensors() { return tensors_; }
  ModelDraft& draft() { return tensors_.draft(); }
  int input_count() const { return static_cast<int>(node().inputs().size()); }
  // REQUIRES: there are as many inputs, as the op's signature says.
  graph::Endpoint input(int i) const { return view().InputOf(id_, i); }
  graph::Endpoint output(int port = 0) const { return {id_, port}; }
  const graph::PartialShape& ShapeOfInput(int i) const {
    return view().ShapeOf(input(i));
  }
  const graph::PartialShape& ShapeOfOutput(int port = 0) const {
    return view().ShapeOf(output(port));
  }
  TensorId Tensor(int i) { return tensors_.Tensor(input(i)); }

  // Whole numbers of an input. ERRORS: FailedPrecondition when they are not
  // known before the model runs.
  absl::StatusOr<std::vector<int64_t>> Numbers(int i) const;
  absl::StatusOr<int64_t> Number(int i) const;
  // A dimension by number, negative from the end, of input `i`.
  // ERRORS: FailedPrecondition without a known rank, InvalidArgument outside.
  absl::StatusOr<int> AxisOf(int64_t axis, int i) const;

  // Constants for operators.
  TensorId Int32s(const std::vector<int64_t>& values);
  TensorId Int32(int64_t value);
  TensorId Float(float value);
  TensorId Floats(std::vector<int64_t> dims, const std::vector<float>& values);
  // Input i as int32: constant, or cast where the graph has int64.
  TensorId Int32Input(int i);

  // Finds what is fused and which tensors are read.
  Layer Begin(const LayerRequest& request);
  // Emits the layer's operator on `inputs`.
  void Finish(const Layer& layer, tflite::BuiltinOperator op,
              std::vector<TensorId> inputs, OperatorOptions options = {});
  // An operator whose output is the node's.
  void Emit(tflite::BuiltinOperator op, std::vector<TensorId> inputs,
            OperatorOptions options = {});
  // An operator whose new output is like `like` in all but its shape.
  TensorId EmitBetween(tflite::BuiltinOperator op, std::vector<TensorId> inputs,
                       TensorId like, graph::PartialShape shape,
                       OperatorOptions options = {});
  // The quantized tensor with other scales or of another type; itself when it
  // has them.
  TensorId Requantized(TensorId from, const Quantization& scales,
                       tflite::TensorType type);
  // Lets the node's output be this tensor.
  void SetOutput(TensorId tensor, int port = 0) {
    tensors_.SetTensor(output(port), tensor);
  }

 private:
  void FindTail(const LayerRequest& request, Layer* layer) const;
  // The only reader of a tensor that is no output of the model; else kNoNode.
  graph::NodeId OnlyReader(graph::Endpoint tensor, int* input) const;
  // Whether the layer works on quantized values, and with which scales.
  bool ChooseScales(const LayerRequest& request, Layer* layer);

  RaisedTensors& tensors_;
  absl::flat_hash_set<graph::NodeId>& raised_;
  graph::NodeId id_;
  tflite::BuiltinOperator builtin_;
  ScaleRule rule_;
};

}  // namespace optfarm::formats::tflite_raising

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_NODE_RAISER_H_
