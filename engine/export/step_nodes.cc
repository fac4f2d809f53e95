#include "engine/export/step_nodes.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/graph/attr.h"

namespace optfarm::exporting {

using graph::Endpoint;
using runtime::RecurrentActivation;
using tensorflow::NodeDef;

NodeDef StepNodes::New(absl::string_view op) const {
  NodeDef def;
  def.set_name(absl::StrCat(prefix_, "/", absl::AsciiStrToLower(op)));
  def.set_op(std::string(op));
  return def;
}

Endpoint StepNodes::Put(NodeDef def, absl::Span<const Endpoint> inputs) {
  return {graph_.Add(std::move(def), inputs), 0};
}

Endpoint StepNodes::Add(absl::string_view op,
                        absl::Span<const Endpoint> inputs) {
  NodeDef def = New(op);
  graph::SetType(&def, "T", type_);
  return Put(std::move(def), inputs);
}

Endpoint StepNodes::Ints(const std::vector<int64_t>& values, bool is_scalar) {
  NodeDef def = New("Const");
  graph::SetType(&def, "dtype", tensorflow::DT_INT32);
  tensorflow::TensorProto* tensor =
      (*def.mutable_attr())["value"].mutable_tensor();
  tensor->set_dtype(tensorflow::DT_INT32);
  if (!is_scalar) {
    tensor->mutable_tensor_shape()->add_dim()->set_size(
        static_cast<int64_t>(values.size()));
  } else {
    tensor->mutable_tensor_shape();
  }
  for (const int64_t value : values) {
    tensor->add_int_val(static_cast<int32_t>(value));
  }
  return Put(std::move(def), {});
}

Endpoint StepNodes::Number(float value) {
  NodeDef def = New("Const");
  graph::SetType(&def, "dtype", tensorflow::DT_FLOAT);
  tensorflow::TensorProto* tensor =
      (*def.mutable_attr())["value"].mutable_tensor();
  tensor->set_dtype(tensorflow::DT_FLOAT);
  tensor->mutable_tensor_shape();
  tensor->add_float_val(value);
  const Endpoint number = Put(std::move(def), {});
  if (type_ == tensorflow::DT_FLOAT) return number;
  NodeDef cast = New("Cast");
  graph::SetType(&cast, "SrcT", tensorflow::DT_FLOAT);
  graph::SetType(&cast, "DstT", type_);
  return Put(std::move(cast), {number});
}

Endpoint StepNodes::Bounded(Endpoint x, float least, float most) {
  return Add("Minimum", {Add("Maximum", {x, Number(least)}), Number(most)});
}

Endpoint StepNodes::Clipped(Endpoint x, float limit) {
  return limit > 0 ? Bounded(x, -limit, limit) : x;
}

Endpoint StepNodes::Activated(Endpoint x, const RecurrentActivation& function) {
  using Kind = RecurrentActivation::Kind;
  const float alpha = function.alpha, beta = function.beta;
  const auto scaled = [&](Endpoint value, float factor) {
    return factor == 1 ? value : Add("Mul", {value, Number(factor)});
  };
  const auto affine = [&] {
    const Endpoint product = scaled(x, alpha);
    return beta == 0 ? product : Add("AddV2", {product, Number(beta)});
  };
  switch (function.kind) {
    case Kind::kSigmoid:
      return Add("Sigmoid", {x});
    case Kind::kTanh:
      return Add("Tanh", {x});
    case Kind::kRelu:
      return Add("Relu", {x});
    case Kind::kAffine:
      return affine();
    case Kind::kHardSigmoid:
      return Bounded(affine(), 0, 1);
    case Kind::kScaledTanh:
      return scaled(Add("Tanh", {scaled(x, beta)}), alpha);
    case Kind::kLeakyRelu:
      return Add("AddV2", {Add("Relu", {x}),
                           scaled(Add("Minimum", {x, Number(0)}), alpha)});
    case Kind::kElu:
      return Add("AddV2",
                 {Add("Relu", {x}),
                  scaled(Add("Elu", {Add("Minimum", {x, Number(0)})}), alpha)});
    case Kind::kSoftsign:
      return Add("RealDiv", {x, Add("AddV2", {Add("Abs", {x}), Number(1)})});
    case Kind::kSoftplus: {
      const Endpoint small = Add("Exp", {Add("Neg", {Add("Abs", {x})})});
      return Add("AddV2", {Add("Relu", {x}),
                           Add("Log", {Add("AddV2", {small, Number(1)})})});
    }
    case Kind::kThresholdedRelu:
      return Chosen(Add("Greater", {x, Number(alpha)}), x,
                    Add("ZerosLike", {x}));
  }
  return x;
}

Endpoint StepNodes::Product(Endpoint x, Endpoint weights) {
  NodeDef def = New("MatMul");
  graph::SetType(&def, "T", type_);
  graph::SetBool(&def, "transpose_b", true);
  return Put(std::move(def), {x, weights});
}

Endpoint StepNodes::Reshaped(Endpoint x, const std::vector<int64_t>& dims) {
  NodeDef def = New("Reshape");
  graph::SetType(&def, "T", type_);
  graph::SetType(&def, "Tshape", tensorflow::DT_INT32);
  return Put(std::move(def), {x, Ints(dims, false)});
}

Endpoint StepNodes::Sliced(Endpoint x, const std::vector<int64_t>& begin,
                           const std::vector<int64_t>& size) {
  NodeDef def = New("Slice");
  graph::SetType(&def, "T", type_);
  graph::SetType(&def, "Index", tensorflow::DT_INT32);
  return Put(std::move(def), {x, Ints(begin, false), Ints(size, false)});
}

Endpoint StepNodes::Swapped(Endpoint x) {
  NodeDef def = New("Transpose");
  graph::SetType(&def, "T", type_);
  graph::SetType(&def, "Tperm", tensorflow::DT_INT32);
  return Put(std::move(def), {x, Ints({1, 0, 2}, false)});
}

Endpoint StepNodes::WithAxis(Endpoint x, int64_t axis) {
  NodeDef def = New("ExpandDims");
  graph::SetType(&def, "T", type_);
  graph::SetType(&def, "Tdim", tensorflow::DT_INT32);
  return Put(std::move(def), {x, Ints({axis}, true)});
}

std::vector<Endpoint> StepNodes::Split(Endpoint x, int count, int axis) {
  NodeDef def = New("Split");
  graph::SetType(&def, "T", type_);
  graph::SetInt(&def, "num_split", count);
  const Endpoint first = Put(std::move(def), {Ints({axis}, true), x});
  std::vector<Endpoint> parts;
  for (int i = 0; i < count; ++i) parts.push_back({first.node, i});
  return parts;
}

std::vector<Endpoint> StepNodes::Unpacked(Endpoint x, int64_t count,
                                          int64_t axis) {
  NodeDef def = New("Unpack");
  graph::SetType(&def, "T", type_);
  graph::SetInt(&def, "num", count);
  graph::SetInt(&def, "axis", axis);
  const Endpoint first = Put(std::move(def), {x});
  std::vector<Endpoint> parts;
  for (int i = 0; i < count; ++i) parts.push_back({first.node, i});
  return parts;
}

Endpoint StepNodes::Packed(const std::vector<Endpoint>& parts, int64_t axis) {
  if (parts.size() == 1) return WithAxis(parts[0], axis);
  NodeDef def = New("Pack");
  graph::SetType(&def, "T", type_);
  graph::SetInt(&def, "N", static_cast<int64_t>(parts.size()));
  graph::SetInt(&def, "axis", axis);
  return Put(std::move(def), parts);
}

Endpoint StepNodes::Joined(const std::vector<Endpoint>& parts, int64_t axis) {
  NodeDef def = New("ConcatV2");
  graph::SetType(&def, "T", type_);
  graph::SetType(&def, "Tidx", tensorflow::DT_INT32);
  graph::SetInt(&def, "N", static_cast<int64_t>(parts.size()));
  std::vector<Endpoint> inputs = parts;
  inputs.push_back(Ints({axis}, true));
  return Put(std::move(def), inputs);
}

Endpoint StepNodes::Zeros(const std::vector<int64_t>& dims) {
  NodeDef def = New("Fill");
  graph::SetType(&def, "T", type_);
  graph::SetType(&def, "index_type", tensorflow::DT_INT32);
  return Put(std::move(def), {Ints(dims, false), Number(0)});
}

Endpoint StepNodes::Mean(Endpoint x) {
  NodeDef def = New("Mean");
  graph::SetType(&def, "T", type_);
  graph::SetType(&def, "Tidx", tensorflow::DT_INT32);
  graph::SetBool(&def, "keep_dims", true);
  return Put(std::move(def), {x, Ints({-1}, false)});
}

Endpoint StepNodes::IsWithin(int64_t step, Endpoint lengths) {
  NodeDef less = New("Less");
  graph::SetType(&less, "T", tensorflow::DT_INT32);
  const Endpoint is_within =
      Put(std::move(less), {Ints({step}, true), lengths});
  NodeDef def = New("ExpandDims");
  graph::SetType(&def, "T", tensorflow::DT_BOOL);
  graph::SetType(&def, "Tdim", tensorflow::DT_INT32);
  return Put(std::move(def), {is_within, Ints({1}, true)});
}

Endpoint StepNodes::Chosen(Endpoint condition, Endpoint if_true,
                           Endpoint if_false) {
  NodeDef def = New("SelectV2");
  graph::SetType(&def, "T", type_);
  return Put(std::move(def), {condition, if_true, if_false});
}

}  // namespace optfarm::exporting
