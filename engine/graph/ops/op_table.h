// Finds the row of an op by its name. Signatures, which are parsed from the
// row's text when somebody asks, come from FindOpDef() of op_defs.h.
//
// THREADS: any. The table of names is made at its first use and never changes.

#ifndef OPTFARM_ENGINE_GRAPH_OPS_OP_TABLE_H_
#define OPTFARM_ENGINE_GRAPH_OPS_OP_TABLE_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "engine/graph/ops/op_row.h"

namespace optfarm::graph {

// The op's row, or nullptr when we do not know the op. OWNERSHIP: constant
// data.
const OpRow* FindOpRow(absl::string_view op);

// The same; for an op that we do not know, a row of defaults without a name.
const OpRow& RowOf(absl::string_view op);

// The names that a row is for. They live until the program ends.
std::vector<absl::string_view> NamesOf(const OpRow& row);

// Whether TensorFlow 1.4 lacks an op of our table. Ops that we do not know are
// not late.
inline bool IsLateOp(absl::string_view op) {
  return RowOf(op).origin != Origin::kTensorFlow14;
}

// --- Roles -------------------------------------------------------------------

// Questions that many passes ask of a node's op.

inline bool HasRole(absl::string_view op, OpRole role) {
  return RowOf(op).role == role;
}
// The one op whose value is in the graph itself.
inline bool IsConst(absl::string_view op) {
  return HasRole(op, OpRole::kConst);
}
// Whether output 0 is a variable: a reference to it or its handle.
inline bool IsVariable(absl::string_view op) {
  const OpRole role = RowOf(op).role;
  return role == OpRole::kVariable || role == OpRole::kResourceVariable;
}
inline bool IsNoOp(absl::string_view op) { return HasRole(op, OpRole::kNoOp); }
inline bool IsIdentity(absl::string_view op) {
  return HasRole(op, OpRole::kIdentity);
}
// Whether the op's only output is its only input, under no condition and in no
// loop: Identity and what is like it.
inline bool IsForwarding(absl::string_view op) {
  const OpRow& row = RowOf(op);
  return row.flow == ValueFlow::kForwarding &&
         (row.role == OpRole::kNone || row.role == OpRole::kIdentity);
}
inline bool IsCast(absl::string_view op) { return HasRole(op, OpRole::kCast); }
inline bool IsReshape(absl::string_view op) {
  return HasRole(op, OpRole::kReshape);
}
inline bool IsTranspose(absl::string_view op) {
  return HasRole(op, OpRole::kTranspose);
}
inline bool IsNegate(absl::string_view op) {
  return HasRole(op, OpRole::kNegate);
}
inline bool IsMultiply(absl::string_view op) {
  return HasRole(op, OpRole::kMultiply);
}
inline bool IsSwitch(absl::string_view op) {
  return HasRole(op, OpRole::kSwitch);
}
inline bool IsMerge(absl::string_view op) {
  return HasRole(op, OpRole::kMerge);
}
inline bool IsEnter(absl::string_view op) {
  return HasRole(op, OpRole::kEnter);
}
inline bool IsExit(absl::string_view op) { return HasRole(op, OpRole::kExit); }
inline bool IsNextIteration(absl::string_view op) {
  return HasRole(op, OpRole::kNextIteration);
}

inline bool IsPlaceholder(absl::string_view op) {
  return HasRole(op, OpRole::kPlaceholder);
}
inline bool IsOptionalPlaceholder(absl::string_view op) {
  return HasRole(op, OpRole::kOptionalPlaceholder);
}

// Between floats and quantized values with a range (QuantizeV2, Dequantize).
inline bool IsQuantize(absl::string_view op) {
  return HasRole(op, OpRole::kQuantize);
}
inline bool IsDequantize(absl::string_view op) {
  return HasRole(op, OpRole::kDequantize);
}
// The same with scale and zero point.
inline bool IsQuantizeLinear(absl::string_view op) {
  return HasRole(op, OpRole::kQuantizeLinear);
}
inline bool IsDequantizeLinear(absl::string_view op) {
  return HasRole(op, OpRole::kDequantizeLinear);
}
inline bool IsFakeQuantize(absl::string_view op) {
  return HasRole(op, OpRole::kFakeQuantize);
}
// From one range to another, and what finds the other range: with one range or
// with one for each channel.
inline bool IsRequantize(absl::string_view op) {
  const OpRole role = RowOf(op).role;
  return role == OpRole::kRequantize || role == OpRole::kRequantizePerChannel;
}
inline bool IsRequantizationRange(absl::string_view op) {
  const OpRole role = RowOf(op).role;
  return role == OpRole::kRequantizationRange ||
         role == OpRole::kRequantizationRangePerChannel;
}

// The product that a float op computes with its weights: Conv2D's,
// DepthwiseConv2dNative's or MatMul's. kNone for all other ops.
inline LayerProduct FloatProductOf(absl::string_view op) {
  const LayerForm& layer = RowOf(op).layer;
  return layer.is_quantized ? LayerProduct::kNone : layer.product;
}
inline bool IsFloatProduct(absl::string_view op) {
  return FloatProductOf(op) != LayerProduct::kNone;
}
inline bool IsFloatMatMul(absl::string_view op) {
  return FloatProductOf(op) == LayerProduct::kMatrix;
}
// Whether the op is a whole layer on quantized values: a product with its bias.
inline bool IsQuantizedLayer(absl::string_view op) {
  const LayerForm& layer = RowOf(op).layer;
  return layer.is_quantized && layer.has_bias;
}
inline bool IsSum(absl::string_view op) { return HasRole(op, OpRole::kAdd); }
// Whether the op adds its two inputs, BiasAdd's way included.
inline bool IsSumOrBias(absl::string_view op) {
  const OpRole role = RowOf(op).role;
  return role == OpRole::kAdd || role == OpRole::kBiasAdd;
}
// The activation that a float op is, or an op on quantized values.
inline Activation ActivationOf(absl::string_view op) {
  const OpRow& row = RowOf(op);
  return row.range_input < 0 ? row.activation : Activation::kNone;
}
inline Activation QuantizedActivationOf(absl::string_view op) {
  const OpRow& row = RowOf(op);
  return row.range_input < 0 ? Activation::kNone : row.activation;
}

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_OPS_OP_TABLE_H_
