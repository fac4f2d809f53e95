#include "engine/transforms/quantizing/layer_nodes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/graph/attr.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/quantized_op_nodes.h"
#include "engine/transforms/quantizing/layer_conditions.h"

namespace optfarm::transforms {

using graph::Endpoint;
using graph::NodeId;
using runtime::Tensor;
using tensorflow::NodeDef;

QuantizedTensor ResultOf(NodeId id) { return {{id, 0}, {id, 1}, {id, 2}}; }

void LayerNodes::Begin(const LayerGroup& group) {
  prefix_ = absl::StrCat("eightbit/", ++count_, "/");
  last_ = group.last();
  anchor_ =
      group.is_in_loop ? node(group.head).inputs()[0].node : graph::kNoNode;
}

NodeDef LayerNodes::Make(absl::string_view name, absl::string_view op) const {
  return MakeNode(absl::StrCat(prefix_, name), op, node(last_));
}

NodeDef LayerNodes::MakeLayer(absl::string_view op) const {
  return MakeNode(absl::StrCat(node(last_).name(), "/eightbit"), op,
                  node(last_));
}

NodeId LayerNodes::Add(NodeDef def, absl::Span<const Endpoint> inputs) {
  return graph_->Add(std::move(def), inputs, {}, last_);
}

void LayerNodes::Anchor(NodeId id) {
  if (anchor_ != graph::kNoNode) graph_->AddControlInput(id, anchor_);
}

Endpoint LayerNodes::IntoLoops(NodeId constant, tensorflow::DataType type) {
  Endpoint tensor = {constant, 0};
  for (NodeId enter : enters_) {
    NodeDef def = Make("enter", "Enter");
    *def.mutable_attr() = node(enter).def().attr();
    def.mutable_attr()->erase("_class");
    graph::SetType(&def, "T", type);
    tensor = {Add(std::move(def), {tensor}), 0};
  }
  if (enters_.empty()) Anchor(constant);
  return tensor;
}

Endpoint LayerNodes::AddConstant(absl::string_view name, const Tensor& value) {
  return IntoLoops(Add(MakeConst(absl::StrCat(prefix_, name), value), {}),
                   value.dtype());
}

Endpoint LayerNodes::AddFloats(absl::string_view name,
                               absl::Span<const float> values) {
  const auto count = static_cast<int64_t>(values.size());
  const bool is_one =
      count > 1 && std::all_of(values.begin(), values.end(),
                               [&](float v) { return v == values[0]; });
  if (!is_one) {
    return AddConstant(name, Tensor::FromValues<float>({count}, values));
  }
  // A value that is given once stands for all elements.
  NodeDef def = MakeScalarConst(absl::StrCat(prefix_, name), values[0]);
  tensorflow::TensorProto* proto =
      (*def.mutable_attr())["value"].mutable_tensor();
  proto->clear_tensor_content();
  proto->add_float_val(values[0]);
  proto->mutable_tensor_shape()->add_dim()->set_size(count);
  return IntoLoops(Add(std::move(def), {}), tensorflow::DT_FLOAT);
}

QuantizedTensor LayerNodes::QuantizedOf(Endpoint floats) {
  const auto found = quantized_.find(floats);
  if (found != quantized_.end()) return found->second;
  return quantized_.emplace(floats, AddQuantize(floats)).first->second;
}

// Through accumulators, so that what is logged and frozen is a
// RequantizationRange as everywhere; fuse_requantization takes them out.
QuantizedTensor LayerNodes::AddQuantize(Endpoint floats) {
  const graph::Node& source = node(floats.node);
  if (IsTrainedRange(*graph_, source)) {
    return ResultOf(Add(MakeQuantize(absl::StrCat(prefix_, "in"),
                                     tensorflow::DT_QUINT8, node(last_)),
                        source.inputs()));
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
  const NodeId accumulators =
      Add(MakeQuantize(absl::StrCat(prefix_, "in_wide"), tensorflow::DT_QINT32,
                       node(last_)),
          inputs);
  return Requantized(ResultOf(accumulators), "in");
}

// One vector constant of one number for the whole graph, and for each place in
// a loop.
Endpoint LayerNodes::Shared(int32_t value) {
  const auto [it, is_new] =
      vectors_.emplace(std::pair(value, anchor_), graph::kNoNode);
  if (is_new) {
    it->second =
        Add(MakeVectorConst(
                absl::StrCat("eightbit/dims", value == 0 ? "0" : ""), {value}),
            {});
    Anchor(it->second);
  }
  return {it->second, 0};
}

QuantizedTensor LayerNodes::Requantized(const QuantizedTensor& accumulators,
                                        absl::string_view name) {
  const std::string base = absl::StrCat(name, name.empty() ? "" : "_");
  std::vector<Endpoint> inputs = accumulators.inputs();
  NodeDef range_def = Make(absl::StrCat(base, "range"), "RequantizationRange");
  graph::SetType(&range_def, "Tinput", tensorflow::DT_QINT32);
  const NodeId range = Add(std::move(range_def), inputs);
  Anchor(range);
  inputs.push_back({range, 0});
  inputs.push_back({range, 1});
  return ResultOf(Add(
      MakeRequantize(absl::StrCat(prefix_, base, "requantize"), node(last_)),
      inputs));
}

QuantizedTensor LayerNodes::Reshaped(const QuantizedTensor& quantized,
                                     absl::Span<const int64_t> dims,
                                     absl::string_view name) {
  std::vector<int32_t> shape;
  for (int64_t dim : dims) {
    shape.push_back(static_cast<int32_t>(std::max<int64_t>(dim, -1)));
  }
  NodeDef def = Make(name, "QuantizedReshape");
  graph::SetType(&def, "T", tensorflow::DT_QUINT8);
  graph::SetType(&def, "Tshape", tensorflow::DT_INT32);
  return ResultOf(
      Add(std::move(def),
          {quantized.values,
           AddConstant(absl::StrCat(name, "_shape"),
                       Tensor::FromValues<int32_t>(
                           {static_cast<int64_t>(shape.size())}, shape)),
           quantized.min, quantized.max}));
}

Endpoint LayerNodes::Cast(Endpoint from, absl::string_view name,
                          tensorflow::DataType from_type,
                          tensorflow::DataType to_type) {
  NodeDef def = Make(name, "Bitcast");
  graph::SetType(&def, "T", from_type);
  graph::SetType(&def, "type", to_type);
  return {Add(std::move(def), {from}), 0};
}

Endpoint LayerNodes::BytesOf(Endpoint quantized) {
  const auto found = bytes_.find(quantized);
  if (found != bytes_.end()) return found->second;
  const Endpoint bytes =
      Cast(quantized, "bytes", tensorflow::DT_QUINT8, tensorflow::DT_UINT8);
  return bytes_[quantized] = bytes;
}

Endpoint LayerNodes::QuantizedOfBytes(Endpoint bytes) {
  const Endpoint quantized =
      Cast(bytes, "codes", tensorflow::DT_UINT8, tensorflow::DT_QUINT8);
  bytes_[quantized] = bytes;
  return quantized;
}

}  // namespace optfarm::transforms
