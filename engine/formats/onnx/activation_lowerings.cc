// Activations beyond those of basic_lowerings.cc.

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/broadcasting.h"
#include "engine/formats/onnx/element_types.h"
#include "engine/formats/onnx/lite_rounding.h"
#include "engine/formats/onnx/lowering_table.h"

namespace optfarm::formats {
namespace {

#define OPTFARM_OP(op) constexpr char k##op[] = #op
OPTFARM_OP(Mish);
OPTFARM_OP(Softplus);
OPTFARM_OP(Softsign);
OPTFARM_OP(Celu);
OPTFARM_OP(Swish);
OPTFARM_OP(ThresholdedRelu);
#undef OPTFARM_OP

template <const char* kOp>
absl::Status LowerUnary(NodeLowering& n) {
  n.SetOutput(0, n.Add(kOp, {n.input(0)}));
  return absl::OkStatus();
}

absl::Status LowerHardSwish(NodeLowering& n) {
  // A step of the input is less than so many of the result.
  constexpr float kMostRatio = 128;
  const auto scale = [&](absl::string_view name) {
    float value = 0;
    const bool is_number =
        absl::SimpleAtof(LiteNote(n, absl::StrCat(kNotePrefix, name)), &value);
    return is_number && value > 0 && std::isfinite(value) ? value : 0.0f;
  };
  const float from = scale("input_scale"), to = scale("output_scale");
  std::vector<OpAttr> attributes;
  if (from > 0 && to > 0 && from / to < kMostRatio) {
    attributes = {{"input_scale", from}, {"output_scale", to}};
  }
  n.SetOutput(0, n.Add("HardSwish", {n.input(0)}, std::move(attributes)));
  return absl::OkStatus();
}

// Those whose attribute alpha is 1 when it is absent.
template <const char* kOp>
absl::Status LowerWithAlpha(NodeLowering& n) {
  n.SetOutput(0, n.Add(kOp, {n.input(0)}, {{"alpha", n.Float("alpha", 1)}}));
  return absl::OkStatus();
}

absl::Status LowerElu(NodeLowering& n) {
  const float alpha = n.Float("alpha", 1);
  n.SetOutput(0, alpha == 1.0f
                     ? n.Add("Elu", {n.input(0)})
                     : n.Add("ScaledElu", {n.input(0)}, {{"alpha", alpha}}));
  return absl::OkStatus();
}

// Version 1 had coarser defaults; both kinds may be written out.
absl::Status LowerSelu(NodeLowering& n) {
  const bool is_first = n.opset() < 6;
  const float alpha = n.Float("alpha", is_first ? 1.6732f : 1.67326319f);
  const float gamma = n.Float("gamma", is_first ? 1.0507f : 1.05070102f);
  if (!is_first && alpha == 1.67326319f && gamma == 1.05070102f) {
    n.SetOutput(0, n.Add("Selu", {n.input(0)}));
    return absl::OkStatus();
  }
  n.SetOutput(0, n.Add("ScaledElu", {n.input(0)},
                       {{"alpha", alpha}, {"gamma", gamma}}));
  return absl::OkStatus();
}

absl::Status LowerLeakyRelu(NodeLowering& n) {
  const float alpha = n.Float("alpha", 0.01f);
  const Endpoint x = n.input(0);
  // LeakyRelu computes in float.
  if (n.dtype(x) == tensorflow::DT_DOUBLE) {
    n.SetOutput(0, n.Add("PRelu", {x, n.ScalarLike(x, double{alpha})}));
    return absl::OkStatus();
  }
  n.SetOutput(0, n.Add("LeakyRelu", {x}, {{"alpha", alpha}}));
  return absl::OkStatus();
}

absl::Status LowerHardSigmoid(NodeLowering& n) {
  n.SetOutput(0, n.Add("HardSigmoid", {n.input(0)},
                       {{"alpha", n.Float("alpha", 0.2f)},
                        {"beta", n.Float("beta", 0.5f)}}));
  return absl::OkStatus();
}

absl::Status LowerShrink(NodeLowering& n) {
  const Endpoint x = n.input(0);
  const bool is_float = IsFloatingType(n.dtype(x));
  const Endpoint from = is_float ? x : n.Cast(x, tensorflow::DT_FLOAT);
  const Endpoint y =
      n.Add("Shrink", {from},
            {{"lambd", n.Float("lambd", 0.5f)}, {"bias", n.Float("bias", 0)}});
  n.SetOutput(0, n.Cast(y, n.dtype(x)));
  return absl::OkStatus();
}

absl::Status LowerGelu(NodeLowering& n) {
  const std::string how = n.String("approximate", "none");
  if (how != "none" && how != "tanh") {
    return absl::InvalidArgumentError(
        absl::StrCat("approximate '", how, "' is neither none nor tanh"));
  }
  n.SetOutput(0, n.Add("Gelu", {n.input(0)}, {{"approximate", how == "tanh"}}));
  return absl::OkStatus();
}

// Slopes broadcast from the last dimension; before version 7 a vector was one
// slope for each channel.
absl::Status LowerPRelu(NodeLowering& n) {
  const Endpoint x = n.input(0);
  Endpoint slope = n.input(1);
  const PartialShape shape = n.shape(slope);
  if (n.opset() < 7 && shape.has_rank() && shape.rank() == 1 &&
      shape.dim(0) != 1) {
    OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(x));
    std::vector<int64_t> behind;
    for (int i = 2; i < rank; ++i) behind.push_back(i - 1);
    slope = n.Unsqueeze(slope, behind);
  }
  const auto known = n.KnownFloats(slope);
  if (known.has_value() && known->size() == 1 &&
      n.dtype(x) == tensorflow::DT_FLOAT && shape.has_rank() &&
      n.shape(x).has_rank() && shape.rank() <= n.shape(x).rank()) {
    n.SetOutput(0, n.Add("LeakyRelu", {x}, {{"alpha", (*known)[0]}}));
    return absl::OkStatus();
  }
  n.SetOutput(0, n.Add("PRelu", {x, slope}));
  return absl::OkStatus();
}

// One at the first of the largest elements, zero elsewhere.
absl::Status LowerHardmax(NodeLowering& n) {
  Endpoint x = n.input(0);
  const Endpoint original = x;
  OPTFARM_ASSIGN_OR_RETURN(int rank, n.Rank(x));
  if (rank == 0) {
    return absl::InvalidArgumentError("it has no axis in a scalar");
  }
  const bool is_flat = n.opset() < 13;
  OPTFARM_ASSIGN_OR_RETURN(
      int axis, NodeLowering::Axis(
                    n.Int("axis", is_flat ? (rank > 1 ? 1 : 0) : -1), rank));
  if (is_flat && axis != rank - 1) {
    OPTFARM_ASSIGN_OR_RETURN(x, FlattenTo2d(n, x, axis));
    axis = 1;
    rank = 2;
  }
  const Endpoint best = n.Add("ArgMax", {x, n.Int32(axis)},
                              {{"output_type", tensorflow::DT_INT64}});
  const Endpoint size =
      n.Add("GatherV2", {n.ShapeOf(x), n.Int32(axis), n.Int32(0)});
  const Endpoint y = n.Add("OneHot",
                           {best, n.Cast(size, tensorflow::DT_INT32),
                            n.ScalarLike(x, 1), n.ScalarLike(x, 0)},
                           {{"axis", axis == rank - 1 ? -1 : axis}});
  n.SetOutput(0,
              x == original ? y : n.Add("Reshape", {y, n.ShapeOf(original)}));
  return absl::OkStatus();
}

constexpr LoweringRow kRows[] = {
    {"Celu", LowerWithAlpha<kCelu>},
    {"Elu", LowerElu},
    {"Gelu", LowerGelu},
    {"HardSigmoid", LowerHardSigmoid},
    {"HardSwish", LowerHardSwish},
    {"Hardmax", LowerHardmax},
    {"LeakyRelu", LowerLeakyRelu},
    {"Mish", LowerUnary<kMish>},
    {"PRelu", LowerPRelu},
    {"Selu", LowerSelu},
    {"Shrink", LowerShrink},
    {"Softplus", LowerUnary<kSoftplus>},
    {"Softsign", LowerUnary<kSoftsign>},
    {"Swish", LowerWithAlpha<kSwish>},
    {"ThresholdedRelu", LowerWithAlpha<kThresholdedRelu>},
};

}  // namespace

absl::Span<const LoweringRow> ActivationLowerings() { return kRows; }

}  // namespace optfarm::formats
