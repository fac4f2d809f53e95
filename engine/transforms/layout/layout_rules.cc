#include "engine/transforms/layout/layout_rules.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/shapes/shape_functions.h"

namespace optfarm::transforms {
namespace {

struct OpRule {
  // Separated by commas.
  const char* ops;
  LayoutRuleMaker make;
};

// Ops whose rows do not tell.
constexpr OpRule kRules[] = {
    {"Abs,Acos,Acosh,Asin,Asinh,Atan,Atanh,Cast,Ceil,Celu,CheckNumerics,Cos,"
     "Cosh,Elu,Erf,Erfc,Exp,Expm1,FakeQuantWithMinMaxArgs,"
     "FakeQuantWithMinMaxVars,Floor,Gelu,HardSigmoid,HardSwish,Inv,Invert,"
     "IsFinite,IsInf,IsNan,LeakyRelu,Log,Log1p,LogicalNot,Mish,Neg,OnesLike,"
     "Reciprocal,Rint,Round,Rsqrt,Selu,Sigmoid,Sign,Sin,Sinh,Softplus,"
     "Softsign,Sqrt,Square,Swish,Tan,Tanh,ThresholdedRelu,ZerosLike",
     MakeUnaryRule},
    {"ClipByValue", MakeClipRule},
    {"PRelu,SelectV2", MakeBroadcastRule},
    {"AddN,Select", MakeAlikeRule},
    {"DequantizeLinear,QuantizeLinear", MakeLinearQuantizationRule},
    {"BiasAdd,LogSoftmax,Softmax", MakeLastAxisRule},
    {"Split", MakeSplitRule},
    {"SplitV", MakeSplitVRule},
    {"All,Any,EuclideanNorm,Max,Mean,Min,Prod,Sum", MakeReductionRule},
    {"ArgMax,ArgMin", MakeArgMaxRule},
    {"GatherV2", MakeGatherRule},
    {"Cumprod,Cumsum,ReverseV2", MakeAxesRule},
    {"MirrorPad,Pad,PadV2,Slice,Tile", MakeExtentsRule},
    {"StridedSlice", MakeStridedSliceRule},
    {"Resize", MakeResizeRule},
    {"GroupNorm,InstanceNorm", MakeFormatRule},
    {"Shape", MakeShapeRule},
    {"ExpandDims,Reshape,Squeeze", MakeReshapeRule},
};

LayoutRuleMaker MakerByName(absl::string_view op) {
  static const auto* const kByName = [] {
    auto* by_name = new absl::flat_hash_map<absl::string_view, LayoutRuleMaker>;
    for (const OpRule& rule : kRules) {
      for (absl::string_view name : absl::StrSplit(rule.ops, ',')) {
        by_name->emplace(name, rule.make);
      }
    }
    return by_name;
  }();
  const auto it = kByName->find(op);
  return it == kByName->end() ? nullptr : it->second;
}

LayoutRuleMaker MakerOf(const graph::Node& node) {
  const graph::OpRow& row = graph::RowOf(node.op());
  if (const LayoutRuleMaker make = MakerByName(node.op())) return make;
  if (row.role == graph::OpRole::kConcat) return MakeConcatRule;
  if (row.range_input >= 0) return nullptr;
  if (graph::IsForwarding(node.op()) ||
      row.activation != graph::Activation::kNone) {
    return node.inputs().size() == 1 ? MakeUnaryRule : nullptr;
  }
  const bool is_broadcast =
      row.shape == graph::BroadcastTwo && node.inputs().size() == 2;
  return is_broadcast ? MakeBroadcastRule : nullptr;
}

}  // namespace

std::unique_ptr<LayoutRule> FindLayoutRule(const LayoutSubject& subject) {
  const LayoutRuleMaker make = MakerOf(subject.node());
  return make == nullptr ? nullptr : make(subject);
}

}  // namespace optfarm::transforms
