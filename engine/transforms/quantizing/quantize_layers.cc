// quantize_layers: makes whole layers compute in 8 bits, with a range of its
// own for the weights of each output channel. Between layers go 8-bit values;
// what is neither a layer nor between two of them stays in float.
//
//   product, bias, Relu        QuantizedConv2DWithBiasAndRelu, Quantized-
//                              DepthwiseConv2D..., QuantizedMatMul...  with
//                              RequantizationRangePerChannel and
//                              RequantizePerChannel
//   sum of two layers, Relu    QuantizedAdd, QuantizedRelu, Requantize
//   pools, shapes, concat,     their quantized forms; ranges pass
//   ResizeBilinear
//   Pad, Transpose, Slice,     themselves, on the bytes of quantized values;
//   ResizeNearestNeighbor ...  ranges pass
//   mean over height, width    QuantizedDepthwiseConv2D, RequantizePerChannel
//   times and plus constants   QuantizedDepthwiseConv2DWithBias...; for one
//                              factor other ranges of the same values
//   other inputs of a layer    QuantizeV2
//   a trained range behind     takes the place of the range that would be found
//   a layer or before it
//
// Constants and ranges of a layer inside a loop wait for the layer's input, so
// that they are there in the same iterations.
//
// Ranges are found at each run at first; freeze_requantization_ranges and then
// fuse_requantization leave one op for each layer. A layer's op is called
// NAME/eightbit, where NAME is the float node whose value it computes; what
// else is added has short names, because a small net is a list of names.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/quantized_op_nodes.h"
#include "engine/transforms/nodes/static_shapes.h"
#include "engine/transforms/quantizing/branch_constants.h"
#include "engine/transforms/quantizing/layer_conditions.h"
#include "engine/transforms/quantizing/layer_groups.h"
#include "engine/transforms/quantizing/layer_nodes.h"
#include "engine/transforms/quantizing/layer_products.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;
using runtime::Tensor;
using tensorflow::NodeDef;

class LayerQuantizer {
 public:
  LayerQuantizer(const graph::ShapeMap& shapes, Graph* graph)
      : shapes_(shapes), nodes_(graph), products_(shapes, &nodes_) {}

  absl::Status Quantize(const LayerGroup& group) {
    nodes_.Begin(group);
    OPTFARM_ASSIGN_OR_RETURN(const QuantizedGroup done, Add(group));
    BecomeDequantize(group.last(), done.quantized.inputs(), done.replacement,
                     nodes_.graph());
    nodes_.SetQuantized({group.last(), 0}, done.quantized);
    return absl::OkStatus();
  }

 private:
  const graph::Node& node(NodeId id) const { return nodes_.node(id); }

  absl::StatusOr<QuantizedGroup> Add(const LayerGroup& group) {
    switch (group.kind) {
      case GroupKind::kProduct:
        return products_.AddProduct(group);
      case GroupKind::kSum:
        return Sum(group);
      case GroupKind::kRangePreserving:
        return RangePreserving(group.head);
      case GroupKind::kDataMovement:
        return DataMovement(group.head);
      case GroupKind::kMean:
        return products_.AddMean(group.head);
      case GroupKind::kChannels:
        return products_.AddChannels(group);
      case GroupKind::kScaled:
        return Scaled(group);
    }
    return absl::InternalError("no such group");
  }

  // --- Sums, range-preserving ops and data movement --------------------------

  QuantizedGroup Sum(const LayerGroup& group) {
    const QuantizedTensor a = nodes_.QuantizedOf(node(group.head).inputs()[0]);
    const QuantizedTensor b = nodes_.QuantizedOf(node(group.head).inputs()[1]);
    NodeId sum = AddSum(a, b);
    if (group.activation != graph::kNoNode) {
      NodeDef relu = nodes_.Make("relu", "QuantizedRelu");
      graph::SetType(&relu, "Tinput", tensorflow::DT_QINT32);
      graph::SetType(&relu, "out_type", tensorflow::DT_QINT32);
      sum = nodes_.Add(std::move(relu), ValuesAndRange(sum));
    }
    return {nodes_.Requantized(ResultOf(sum)), sum};
  }

  NodeId AddSum(const QuantizedTensor& a, const QuantizedTensor& b) {
    NodeDef def = nodes_.MakeLayer("QuantizedAdd");
    graph::SetType(&def, "T1", tensorflow::DT_QUINT8);
    graph::SetType(&def, "T2", tensorflow::DT_QUINT8);
    graph::SetType(&def, "Toutput", tensorflow::DT_QINT32);
    return nodes_.Add(std::move(def),
                      {a.values, b.values, a.min, a.max, b.min, b.max});
  }

  QuantizedGroup RangePreserving(NodeId id) {
    const graph::Node& from = node(id);
    const graph::OpRow& row = graph::RowOf(from.op());
    NodeDef def = nodes_.MakeLayer(row.quantized->op);
    graph::SetType(&def, "T", tensorflow::DT_QUINT8);
    CopyAttributes(from,
                   {"ksize", "strides", "padding", "N", "Tidx", "Tshape",
                    "align_corners", "half_pixel_centers"},
                   &def);
    std::vector<Endpoint> inputs, mins, maxs;
    for (int index : MovedInputs(from)) {
      const QuantizedTensor moved = nodes_.QuantizedOf(from.inputs()[index]);
      inputs.push_back(moved.values);
      mins.push_back(moved.min);
      maxs.push_back(moved.max);
    }
    if (row.role == graph::OpRole::kConcat) {
      if (row.has_axis_first) {
        inputs.insert(inputs.begin(), from.inputs().front());
      } else {
        inputs.push_back(from.inputs().back());
      }
    } else if (row.quantized->plain_input == 1) {
      inputs.push_back(from.inputs()[1]);
    } else if (row.flow == graph::ValueFlow::kReshaping) {
      inputs.push_back(ShapeOf(id));
    }
    inputs.insert(inputs.end(), mins.begin(), mins.end());
    inputs.insert(inputs.end(), maxs.begin(), maxs.end());
    const NodeId passed = nodes_.Add(std::move(def), inputs);
    return {ResultOf(passed), passed};
  }

  // The node's shape as a constant; at most one dimension is not known.
  Endpoint ShapeOf(NodeId id) {
    const graph::PartialShape& shape = shapes_.Of({id, 0});
    std::vector<int32_t> dims;
    for (int i = 0; i < shape.rank(); ++i) {
      dims.push_back(static_cast<int32_t>(std::max<int64_t>(shape.dim(i), -1)));
    }
    return nodes_.AddConstant(
        "shape",
        Tensor::FromValues<int32_t>({static_cast<int64_t>(dims.size())}, dims));
  }

  // The op itself, on bytes: TensorFlow has it for those, whereas for quantized
  // values few have been registered. What it fills up with is the zero point
  // (33).
  QuantizedGroup DataMovement(NodeId id) {
    const graph::Node& from = node(id);
    NodeDef def = nodes_.MakeLayer(from.op());
    *def.mutable_attr() = from.def().attr();
    graph::SetType(&def, "T", tensorflow::DT_UINT8);
    const QuantizedTensor x = nodes_.QuantizedOf(from.inputs()[0]);
    std::vector<Endpoint> inputs(from.inputs().begin(), from.inputs().end());
    inputs[0] = nodes_.BytesOf(x.values);
    if (FillingOf(*nodes_.graph(), from).is_needed) {
      def.set_op("PadV2");
      inputs.resize(2);
      inputs.push_back(nodes_.BytesOf(ZeroOf(x)));
    }
    const NodeId moved = nodes_.Add(std::move(def), inputs);
    return {{nodes_.QuantizedOfBytes({moved, 0}), x.min, x.max}, moved};
  }

  // The zero point in the range of x.
  Endpoint ZeroOf(const QuantizedTensor& x) {
    const Endpoint zero =
        nodes_.AddConstant("nothing", Tensor::Scalar<float>(0.0f));
    NodeDef def = nodes_.Make("zero", "QuantizeV2");
    graph::SetType(&def, "T", tensorflow::DT_QUINT8);
    graph::SetString(&def, "mode", "MIN_FIRST");
    return {nodes_.Add(std::move(def), {zero, x.min, x.max}), 0};
  }

  absl::StatusOr<QuantizedGroup> Scaled(const LayerGroup& group) {
    OPTFARM_ASSIGN_OR_RETURN(const FloatView factor,
                             FloatView::Of(node(group.weights)));
    const QuantizedTensor scaled =
        WithScaledRange(nodes_.QuantizedOf(NumbersBeside(
                            *nodes_.graph(), node(group.head), group.weights)),
                        factor.values()[0]);
    return QuantizedGroup{scaled, scaled.max.node};
  }

  // Formula 36.
  QuantizedTensor WithScaledRange(QuantizedTensor x, float factor) {
    const Endpoint constant =
        nodes_.AddConstant("factor", Tensor::Scalar<float>(factor));
    for (Endpoint* end : {&x.min, &x.max}) {
      NodeDef mul = nodes_.Make("scaled", "Mul");
      graph::SetType(&mul, "T", tensorflow::DT_FLOAT);
      *end = {nodes_.Add(std::move(mul), {*end, constant}), 0};
    }
    return x;
  }

  const graph::ShapeMap& shapes_;
  LayerNodes nodes_;
  LayerProducts products_;
};

absl::Status QuantizeLayers(Graph* graph, TransformContext* context) {
  KeptNodes kept;
  for (const std::string& op : context->arguments().Strings("ignore_op")) {
    kept.ops.insert(op);
  }
  for (const std::string& name : context->arguments().Strings("exclude_node")) {
    kept.names.insert(name);
  }
  ReadConstantsDirectly(graph);
  OPTFARM_ASSIGN_OR_RETURN(const graph::ShapeMap shapes,
                           InferShapesWithInputs(*graph, *context));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<LayerGroup> groups,
                           FindLayerGroups(*graph, kept, context));
  LayerQuantizer quantizer(shapes, graph);
  for (const LayerGroup& group : groups) {
    OPTFARM_RETURN_IF_ERROR(quantizer.Quantize(group));
    context->CountChange();
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef QuantizeLayersTransform() {
  return {.name = "quantize_layers",
          .summary =
              "Quantizes whole layers to 8 bits, with per-channel ranges of "
              "the weights.",
          .parameters = {{.name = "ignore_op",
                          .help = "Op whose nodes stay in float.",
                          .repeated = true},
                         {.name = "exclude_node",
                          .help = "Name of a node that stays in float, with "
                                  "its bias and activation.",
                          .repeated = true}},
          .run = QuantizeLayers};
}

}  // namespace optfarm::transforms
