// quantize_layers: makes whole layers compute in 8 bits, with a range of its
// own for the weights of each output channel. Between layers go 8-bit codes;
// what is neither a layer nor between two of them stays in float.
//
//   product, bias, Relu        QuantizedConv2DWithBiasAndRelu, Quantized-
//                              DepthwiseConv2D..., QuantizedMatMul...  with
//                              RequantizationRangePerChannel and
//                              RequantizePerChannel
//   sum of two layers, Relu    QuantizedAdd, QuantizedRelu, Requantize
//   pools, shapes, concat      their 8-bit forms; codes and ranges pass
//   other inputs of a layer    QuantizeV2
//   a trained range behind     takes the place of the range that would be found
//   a layer or before it
//
// Ranges are found at each run at first; freeze_requantization_ranges and then
// fuse_requantization leave one op for each layer. A layer's op is called
// NAME/eightbit, where NAME is the float node whose value it computes; what
// else is added has short names, because a small net is a list of names.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/transforms/branch_constants.h"
#include "engine/transforms/builtin_transforms.h"
#include "engine/transforms/channel_codes.h"
#include "engine/transforms/constant_nodes.h"
#include "engine/transforms/convolution_weights.h"
#include "engine/transforms/layer_groups.h"
#include "engine/transforms/quantized_op_nodes.h"
#include "engine/transforms/static_shapes.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;
using runtime::Tensor;
using tensorflow::NodeDef;

// A Relu6's range.
constexpr float kSix = 6.0f;

// Weights as they stand in the graph.
struct CodedWeights {
  Endpoint codes, min, max;
};

class LayerQuantizer {
 public:
  LayerQuantizer(const graph::ShapeMap& shapes, Graph* graph)
      : shapes_(shapes), graph_(graph) {}

  absl::Status Quantize(const LayerGroup& group) {
    prefix_ = absl::StrCat("eightbit/", ++count_, "/");
    last_ = group.last();
    NodeId codes = graph::kNoNode, heir = graph::kNoNode;
    if (group.kind == GroupKind::kProduct) {
      OPTFARM_ASSIGN_OR_RETURN(heir, AddProduct(group));
      codes = AddRequantizePerChannel(heir, group);
    } else if (group.kind == GroupKind::kSum) {
      heir = AddSum(group);
      codes = AddRequantize(heir);
    } else {
      OPTFARM_ASSIGN_OR_RETURN(codes, AddPassing(group.head));
      heir = codes;
    }
    BecomeDequantize(last_, codes, heir, graph_);
    codes_[{last_, 0}] = codes;
    return absl::OkStatus();
  }

 private:
  const graph::Node& node(NodeId id) const { return graph_->node(id); }

  NodeId Add(NodeDef def, absl::Span<const Endpoint> inputs) {
    return graph_->Add(std::move(def), inputs, {}, last_);
  }

  NodeDef Make(absl::string_view name, absl::string_view op) const {
    return MakeNode(absl::StrCat(prefix_, name), op, node(last_));
  }

  std::string LayerName() const {
    return absl::StrCat(node(last_).name(), "/eightbit");
  }

  // --- Floats to codes -------------------------------------------------------

  // The node whose outputs 0, 1 and 2 are the codes of a float tensor.
  NodeId CodesOf(Endpoint floats) {
    const auto [it, is_new] = codes_.emplace(floats, graph::kNoNode);
    if (is_new) it->second = AddQuantize(floats);
    return it->second;
  }

  // Through 32-bit codes, so that what is logged and frozen is a
  // RequantizationRange as everywhere; fuse_requantization takes them out.
  NodeId AddQuantize(Endpoint floats) {
    const graph::Node& source = node(floats.node);
    if (IsTrainedRange(*graph_, source)) {
      return Add(MakeQuantize(absl::StrCat(prefix_, "in"),
                              tensorflow::DT_QUINT8, node(last_)),
                 source.inputs());
    }
    NodeDef reshape = Make("in_flat", "Reshape");
    graph::SetType(&reshape, "T", tensorflow::DT_FLOAT);
    const NodeId flat = Add(std::move(reshape), {floats, Shared(-1)});
    std::vector<Endpoint> inputs = {floats};
    for (const char* op : {"Min", "Max"}) {
      NodeDef def = Make(absl::StrCat("in_", op), op);
      graph::SetType(&def, "T", tensorflow::DT_FLOAT);
      graph::SetBool(&def, "keep_dims", false);
      inputs.push_back({Add(std::move(def), {{flat, 0}, Shared(0)}), 0});
    }
    const NodeId wide = Add(MakeQuantize(absl::StrCat(prefix_, "in_wide"),
                                         tensorflow::DT_QINT32, node(last_)),
                            inputs);
    return AddRequantize(wide, "in");
  }

  // One vector constant of one number for the whole graph.
  Endpoint Shared(int32_t value) {
    const auto [it, is_new] = vectors_.emplace(value, graph::kNoNode);
    if (is_new) {
      it->second = Add(
          MakeVectorConst(absl::StrCat("eightbit/dims", value == 0 ? "0" : ""),
                          {value}),
          {});
    }
    return {it->second, 0};
  }

  // --- Products --------------------------------------------------------------

  absl::StatusOr<NodeId> AddProduct(const LayerGroup& group) {
    const graph::Node& head = node(group.head);
    const bool is_matrix = head.op() == "MatMul";
    OPTFARM_ASSIGN_OR_RETURN(const Endpoint bias, Bias(group));
    OPTFARM_ASSIGN_OR_RETURN(const CodedWeights weights, Weights(group));
    const NodeId x = CodesOf(head.inputs()[0]);
    const std::string product = is_matrix               ? "MatMul"
                                : head.op() == "Conv2D" ? "Conv2D"
                                                        : "DepthwiseConv2D";
    NodeDef def = MakeNode(
        LayerName(),
        absl::StrCat("Quantized", product, "WithBias",
                     group.activation != graph::kNoNode ? "AndRelu" : ""),
        node(last_));
    graph::SetType(&def, is_matrix ? "T1" : "Tinput", tensorflow::DT_QUINT8);
    graph::SetType(&def, is_matrix ? "T2" : "Tfilter", tensorflow::DT_QINT8);
    graph::SetType(&def, is_matrix ? "Toutput" : "out_type",
                   tensorflow::DT_QINT32);
    for (const char* attribute :
         {"strides", "padding", "dilations", "transpose_b"}) {
      if (head.FindAttr(attribute) != nullptr) {
        graph::CopyAttr(head.def(), attribute, &def);
      }
    }
    // The definition of this one op has a type for its bias.
    if (def.op() == "QuantizedMatMulWithBias") {
      graph::SetType(&def, "Tbias", tensorflow::DT_FLOAT);
    }
    const std::vector<NodeId> controls(head.control_inputs().begin(),
                                       head.control_inputs().end());
    const NodeId layer = Add(std::move(def), {{x, 0},
                                              weights.codes,
                                              bias,
                                              {x, 1},
                                              {x, 2},
                                              weights.min,
                                              weights.max});
    for (NodeId control : controls) graph_->AddControlInput(layer, control);
    return layer;
  }

  absl::StatusOr<int64_t> Channels(const graph::Node& head) const {
    OPTFARM_ASSIGN_OR_RETURN(const FloatView weights,
                             FloatView::Of(node(head.inputs()[1].node)));
    return OutputChannels(head, weights.shape());
  }

  // A vector with a number for each channel; zeros where there was none, which
  // the correction of biases may change.
  absl::StatusOr<Endpoint> Bias(const LayerGroup& group) {
    OPTFARM_ASSIGN_OR_RETURN(const int64_t channels,
                             Channels(node(group.head)));
    std::vector<float> values(static_cast<size_t>(channels), 0.0f);
    if (group.bias != graph::kNoNode) {
      OPTFARM_ASSIGN_OR_RETURN(const FloatView bias,
                               FloatView::Of(node(group.bias)));
      values.assign(bias.values().begin(), bias.values().end());
    }
    return Endpoint{
        Add(MakeConst(absl::StrCat(prefix_, "bias"),
                      Tensor::FromValues<float>({channels}, values)),
            {}),
        0};
  }

  absl::StatusOr<CodedWeights> Weights(const LayerGroup& group) {
    const graph::Node& head = node(group.head);
    const NodeId constant = head.inputs()[1].node;
    const std::string key = absl::StrCat(
        constant, head.op(), group.bias,
        graph::GetBoolOr(head.def(), "transpose_b", false).value_or(false));
    const auto [it, is_new] = weights_.emplace(key, CodedWeights());
    if (!is_new) return it->second;
    OPTFARM_ASSIGN_OR_RETURN(const FloatView view,
                             FloatView::Of(node(constant)));
    OPTFARM_ASSIGN_OR_RETURN(const int64_t channels, Channels(head));
    FloatView bias;
    if (group.bias != graph::kNoNode) {
      OPTFARM_ASSIGN_OR_RETURN(bias, FloatView::Of(node(group.bias)));
    }
    const bool channels_first =
        graph::GetBoolOr(head.def(), "transpose_b", false).value_or(false);
    const ChannelCodes coded =
        CodeByChannel(view.values(), channels, channels_first, bias.values());
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor codes, Tensor::Allocate(tensorflow::DT_QINT8, view.shape()));
    std::copy(coded.codes.begin(), coded.codes.end(), codes.data<int8_t>());
    it->second.codes = {
        Add(MakeConst(absl::StrCat(prefix_, "weights"), codes), {}), 0};
    it->second.max = {
        Add(MakeConst(absl::StrCat(prefix_, "max"),
                      Tensor::FromValues<float>({channels}, coded.largest)),
            {}),
        0};
    // The ranges are symmetric: the other end costs no bytes.
    NodeDef negated = Make("min", "Neg");
    graph::SetType(&negated, "T", tensorflow::DT_FLOAT);
    it->second.min = {Add(std::move(negated), {it->second.max}), 0};
    return it->second;
  }

  NodeId AddRequantizePerChannel(NodeId layer, const LayerGroup& group) {
    std::vector<Endpoint> inputs = CodesAndRange(layer);
    if (group.trained_range != graph::kNoNode) {
      const auto range = node(group.trained_range).inputs();
      inputs.insert(inputs.end(), range.begin() + 1, range.end());
    } else {
      const NodeId range = AddRange(inputs, group);
      inputs.push_back({range, 0});
      inputs.push_back({range, 1});
    }
    NodeDef def = Make("requantize", "RequantizePerChannel");
    graph::SetType(&def, "T", tensorflow::DT_QINT32);
    graph::SetType(&def, "out_type", tensorflow::DT_QUINT8);
    return Add(std::move(def), inputs);
  }

  NodeId AddRange(absl::Span<const Endpoint> sums, const LayerGroup& group) {
    NodeDef range_def = Make("range", "RequantizationRangePerChannel");
    graph::SetType(&range_def, "T", tensorflow::DT_QINT32);
    const bool has_six = group.activation != graph::kNoNode &&
                         node(group.activation).op() == "Relu6";
    graph::SetFloat(&range_def, "clip_value_max", has_six ? kSix : 0.0f);
    return Add(std::move(range_def), sums);
  }

  // --- Sums and what passes codes on -----------------------------------------

  NodeId AddSum(const LayerGroup& group) {
    const NodeId a = CodesOf(node(group.head).inputs()[0]);
    const NodeId b = CodesOf(node(group.head).inputs()[1]);
    NodeDef def = MakeNode(LayerName(), "QuantizedAdd", node(last_));
    graph::SetType(&def, "T1", tensorflow::DT_QUINT8);
    graph::SetType(&def, "T2", tensorflow::DT_QUINT8);
    graph::SetType(&def, "Toutput", tensorflow::DT_QINT32);
    const NodeId sum =
        Add(std::move(def), {{a, 0}, {b, 0}, {a, 1}, {a, 2}, {b, 1}, {b, 2}});
    if (group.activation == graph::kNoNode) return sum;
    NodeDef relu = Make("relu", "QuantizedRelu");
    graph::SetType(&relu, "Tinput", tensorflow::DT_QINT32);
    graph::SetType(&relu, "out_type", tensorflow::DT_QINT32);
    return Add(std::move(relu), CodesAndRange(sum));
  }

  NodeId AddRequantize(NodeId wide, absl::string_view name = "") {
    const std::string base = absl::StrCat(name, name.empty() ? "" : "_");
    std::vector<Endpoint> inputs = CodesAndRange(wide);
    NodeDef range_def =
        Make(absl::StrCat(base, "range"), "RequantizationRange");
    graph::SetType(&range_def, "Tinput", tensorflow::DT_QINT32);
    const NodeId range = Add(std::move(range_def), inputs);
    inputs.push_back({range, 0});
    inputs.push_back({range, 1});
    return Add(
        MakeRequantize(absl::StrCat(prefix_, base, "requantize"), node(last_)),
        inputs);
  }

  absl::StatusOr<NodeId> AddPassing(NodeId id) {
    const graph::Node& from = node(id);
    std::string op = from.op();
    if (op == "Squeeze" || op == "ExpandDims") op = "Reshape";
    NodeDef def =
        MakeNode(LayerName(), absl::StrCat("Quantized", op), node(last_));
    graph::SetType(&def, "T", tensorflow::DT_QUINT8);
    for (const char* attribute :
         {"ksize", "strides", "padding", "N", "Tidx", "Tshape"}) {
      if (from.FindAttr(attribute) != nullptr) {
        graph::CopyAttr(from.def(), attribute, &def);
      }
    }
    std::vector<NodeId> moved;
    for (int index : MovedInputs(from)) {
      moved.push_back(CodesOf(from.inputs()[index]));
    }
    const auto all = [&](int port) {
      std::vector<Endpoint> endpoints;
      for (NodeId source : moved) endpoints.push_back({source, port});
      return endpoints;
    };
    std::vector<Endpoint> inputs = all(0);
    if (op == "ConcatV2") {
      inputs.push_back(from.inputs().back());
    } else if (op == "Concat") {
      inputs.insert(inputs.begin(), from.inputs().front());
    } else if (op == "Reshape") {
      inputs.push_back(from.op() == "Reshape" ? from.inputs()[1] : ShapeOf(id));
    }
    for (int port : {1, 2}) {
      for (const Endpoint& range : all(port)) inputs.push_back(range);
    }
    return Add(std::move(def), inputs);
  }

  // The node's shape as a constant; at most one dimension is not known.
  Endpoint ShapeOf(NodeId id) {
    const graph::PartialShape& shape = shapes_.Of({id, 0});
    std::vector<int32_t> dims;
    for (int i = 0; i < shape.rank(); ++i) {
      dims.push_back(static_cast<int32_t>(std::max<int64_t>(shape.dim(i), -1)));
    }
    return {Add(MakeConst(absl::StrCat(prefix_, "shape"),
                          Tensor::FromValues<int32_t>(
                              {static_cast<int64_t>(dims.size())}, dims)),
                {}),
            0};
  }

  const graph::ShapeMap& shapes_;
  Graph* graph_;
  int count_ = 0;
  // Of the group at hand.
  std::string prefix_;
  NodeId last_ = graph::kNoNode;
  // What has been made, for those who need it again.
  absl::flat_hash_map<Endpoint, NodeId> codes_;
  absl::flat_hash_map<int32_t, NodeId> vectors_;
  absl::flat_hash_map<std::string, CodedWeights> weights_;
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
              "Makes layers compute in 8 bits as a whole, with a range for "
              "the weights of each output channel.",
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
