#include "engine/runtime/fusion/layer_padding.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/graph/ops/op_table.h"
#include "engine/runtime/fusion/channel_affine.h"

namespace optfarm::runtime {
namespace {

// More than any image has, and little enough to add.
constexpr int64_t kMostPadding = 1 << 20;

bool IsZero(const Tensor* value) {
  return value != nullptr && value->dtype() == tensorflow::DT_FLOAT &&
         value->num_elements() == 1 && *value->data<float>() == 0.0f;
}

bool PadsWithZeros(const PlanEditor& plan, const Step* step) {
  const bool is_pad = step != nullptr &&
                      graph::HasRole(step->op, graph::OpRole::kPad) &&
                      ComputesFloats(*step);
  if (!is_pad) return false;
  return step->inputs.size() == 2 ||
         (step->inputs.size() == 3 && IsZero(plan.ConstantOf(step->inputs[2])));
}

}  // namespace

bool ReadPadding(const PlanEditor& plan, int pad, int reader,
                 WindowAttrs* window) {
  const Step& step = *plan.step(pad);
  if (window->padding != Padding::kValid || step.outputs.size() != 1 ||
      plan.OnlyReaderOf(step.outputs[0]) != reader) {
    return false;
  }
  const Tensor* paddings = plan.ConstantOf(step.inputs[1]);
  if (paddings == nullptr || paddings->shape() != Shape({4, 2})) return false;
  const absl::StatusOr<std::vector<int64_t>> pads = paddings->AsInt64s();
  if (!pads.ok() || (*pads)[0] != 0 || (*pads)[1] != 0 || (*pads)[6] != 0 ||
      (*pads)[7] != 0 || std::any_of(pads->begin(), pads->end(), [](int64_t p) {
        return p < 0 || p > kMostPadding;
      })) {
    return false;
  }
  window->padding = Padding::kExplicit;
  window->pad_top = (*pads)[2];
  window->pad_bottom = (*pads)[3];
  window->pad_left = (*pads)[4];
  window->pad_right = (*pads)[5];
  return true;
}

int FindPadding(const PlanEditor& plan, int layer, WindowAttrs* window) {
  const int number = plan.ProducerOf(plan.step(layer)->inputs[0]);
  if (number == kNoStep || !PadsWithZeros(plan, plan.step(number)) ||
      !plan.MayFuse({number, layer}, plan.step(layer)->outputs) ||
      !ReadPadding(plan, number, layer, window)) {
    return kNoStep;
  }
  return number;
}

}  // namespace optfarm::runtime
