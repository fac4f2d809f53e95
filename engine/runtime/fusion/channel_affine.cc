#include "engine/runtime/fusion/channel_affine.h"

#include <cmath>

#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/spatial_attrs.h"

namespace optfarm::runtime {
namespace {

using Affine = std::optional<ChannelAffine>;

// Everything that a batch norm takes, in double precision until the end.
struct Norm {
  const Tensor* mean = nullptr;
  const Tensor* variance = nullptr;
  const Tensor* beta = nullptr;
  // nullptr for one.
  const Tensor* gamma = nullptr;
  float epsilon = 0.0f;
};

bool IsChannelsLast(const Step& step) { return graph::IsNhwc(*step.node); }

// A constant that broadcasts along the last dimension, one value each.
bool IsPerChannel(const Tensor* value, const ChannelLayout& layout) {
  return value != nullptr && value->dtype() == tensorflow::DT_FLOAT &&
         value->rank() >= 1 && value->rank() <= layout.rank &&
         value->num_elements() == layout.channels &&
         value->dim(value->rank() - 1) == layout.channels;
}

std::vector<float> ValuesOf(const Tensor& value) {
  return std::vector<float>(value.flat<float>().begin(),
                            value.flat<float>().end());
}

Affine ReadBias(const PlanEditor& plan, const Step& step, int slot,
                const ChannelLayout& layout) {
  const Tensor* bias = plan.ConstantOf(step.inputs[1]);
  if (step.inputs[0] != slot || !IsChannelsLast(step) ||
      !IsPerChannel(bias, layout) || bias->rank() != 1) {
    return std::nullopt;
  }
  return ChannelAffine{{}, ValuesOf(*bias)};
}

// x + c, x - c, x * c.
Affine ReadArithmetic(const PlanEditor& plan, const Step& step, int slot,
                      const ChannelLayout& layout) {
  if (step.inputs[0] == step.inputs[1]) return std::nullopt;
  const bool is_left = step.inputs[0] == slot;
  const Tensor* value = plan.ConstantOf(step.inputs[is_left ? 1 : 0]);
  if (!IsPerChannel(value, layout)) return std::nullopt;
  std::vector<float> values = ValuesOf(*value);
  const graph::OpRole role = graph::RowOf(step.op).role;
  if (role == graph::OpRole::kMultiply) {
    return ChannelAffine{std::move(values), {}};
  }
  if (role == graph::OpRole::kSubtract) {
    if (!is_left) return std::nullopt;
    for (float& v : values) v = -v;
  }
  return ChannelAffine{{}, std::move(values)};
}

Affine AffineOf(const Norm& norm, const ChannelLayout& layout) {
  for (const Tensor* part : {norm.mean, norm.variance, norm.beta}) {
    if (!IsPerChannel(part, layout) || part->rank() != 1) return std::nullopt;
  }
  if (norm.gamma != nullptr &&
      (!IsPerChannel(norm.gamma, layout) || norm.gamma->rank() != 1)) {
    return std::nullopt;
  }
  ChannelAffine affine;
  for (int64_t c = 0; c < layout.channels; ++c) {
    const double gamma =
        norm.gamma == nullptr ? 1.0 : norm.gamma->data<float>()[c];
    const double deviation = std::sqrt(
        static_cast<double>(norm.variance->data<float>()[c] + norm.epsilon));
    const double scale = gamma / deviation;
    affine.scale.push_back(static_cast<float>(scale));
    affine.bias.push_back(static_cast<float>(
        norm.beta->data<float>()[c] - norm.mean->data<float>()[c] * scale));
  }
  return affine;
}

Affine ReadFusedNorm(const PlanEditor& plan, const Step& step, int slot,
                     const ChannelLayout& layout) {
  const auto training = graph::GetBoolOr(*step.node, "is_training", true);
  const auto epsilon = graph::GetFloatOr(*step.node, "epsilon", 0.0001f);
  if (step.inputs.size() != 5 || step.inputs[0] != slot || layout.rank != 4 ||
      !training.ok() || *training || !epsilon.ok() || !IsChannelsLast(step)) {
    return std::nullopt;
  }
  return AffineOf(
      {plan.ConstantOf(step.inputs[3]), plan.ConstantOf(step.inputs[4]),
       plan.ConstantOf(step.inputs[2]), plan.ConstantOf(step.inputs[1]),
       *epsilon},
      layout);
}

Affine ReadOldNorm(const PlanEditor& plan, const Step& step, int slot,
                   const ChannelLayout& layout) {
  const auto scales =
      graph::GetBoolOr(*step.node, "scale_after_normalization", true);
  const auto epsilon = graph::GetFloatOr(*step.node, "variance_epsilon", 0.0f);
  if (step.inputs.size() != 5 || step.inputs[0] != slot || layout.rank != 4 ||
      !scales.ok() || !epsilon.ok()) {
    return std::nullopt;
  }
  return AffineOf(
      {plan.ConstantOf(step.inputs[1]), plan.ConstantOf(step.inputs[2]),
       plan.ConstantOf(step.inputs[3]),
       *scales ? plan.ConstantOf(step.inputs[4]) : nullptr, *epsilon},
      layout);
}

}  // namespace

bool ComputesFloats(const Step& step) {
  if (step.node == nullptr || step.kind != StepKind::kKernel) return false;
  const auto type = graph::GetTypeOr(*step.node, "T", tensorflow::DT_INVALID);
  return type.ok() && *type == tensorflow::DT_FLOAT;
}

bool IsFloatNode(const Step* step, const char* op) {
  return step != nullptr && step->op == op && ComputesFloats(*step);
}

std::optional<ChannelAffine> ReadChannelAffine(const PlanEditor& plan,
                                               const Step& step, int slot,
                                               const ChannelLayout& layout) {
  if (!ComputesFloats(step)) return std::nullopt;
  switch (graph::RowOf(step.op).role) {
    case graph::OpRole::kBiasAdd:
      return ReadBias(plan, step, slot, layout);
    case graph::OpRole::kAdd:
    case graph::OpRole::kSubtract:
    case graph::OpRole::kMultiply:
      return ReadArithmetic(plan, step, slot, layout);
    case graph::OpRole::kBatchNorm:
      return ReadFusedNorm(plan, step, slot, layout);
    case graph::OpRole::kGlobalBatchNorm:
      return ReadOldNorm(plan, step, slot, layout);
    default:
      return std::nullopt;
  }
}

ChannelAffine Compose(const ChannelAffine& first, const ChannelAffine& second) {
  ChannelAffine both = first;
  if (!second.scale.empty()) {
    for (size_t c = 0; c < both.bias.size(); ++c) {
      both.bias[c] *= second.scale[c];
    }
    if (both.scale.empty()) {
      both.scale = second.scale;
    } else {
      for (size_t c = 0; c < both.scale.size(); ++c) {
        both.scale[c] *= second.scale[c];
      }
    }
  }
  if (both.bias.empty()) {
    both.bias = second.bias;
  } else {
    for (size_t c = 0; c < second.bias.size(); ++c) {
      both.bias[c] += second.bias[c];
    }
  }
  return both;
}

}  // namespace optfarm::runtime
