#include "engine/runtime/fusion/layer_padding.h"

#include <algorithm>
#include <cstdint>
#include <vector>

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
  if (IsFloatNode(step, "Pad")) return step->inputs.size() == 2;
  return IsFloatNode(step, "PadV2") && step->inputs.size() == 3 &&
         IsZero(plan.ConstantOf(step->inputs[2]));
}

}  // namespace

int FindPadding(const PlanEditor& plan, int layer, WindowAttrs* window) {
  if (window->padding != Padding::kValid) return kNoStep;
  const int image = plan.step(layer)->inputs[0];
  const int number = plan.ProducerOf(image);
  if (number == kNoStep || plan.OnlyReaderOf(image) != layer) return kNoStep;
  const Step* step = plan.step(number);
  if (!PadsWithZeros(plan, step)) return kNoStep;
  const Tensor* paddings = plan.ConstantOf(step->inputs[1]);
  if (paddings == nullptr || paddings->shape() != Shape({4, 2})) return kNoStep;
  const absl::StatusOr<std::vector<int64_t>> pads = paddings->AsInt64s();
  if (!pads.ok() || (*pads)[0] != 0 || (*pads)[1] != 0 || (*pads)[6] != 0 ||
      (*pads)[7] != 0 ||
      std::any_of(pads->begin(), pads->end(),
                  [](int64_t pad) { return pad < 0 || pad > kMostPadding; })) {
    return kNoStep;
  }
  if (!plan.MayFuse({number, layer}, plan.step(layer)->outputs)) {
    return kNoStep;
  }
  window->padding = Padding::kExplicit;
  window->pad_top = (*pads)[2];
  window->pad_bottom = (*pads)[3];
  window->pad_left = (*pads)[4];
  window->pad_right = (*pads)[5];
  return number;
}

}  // namespace optfarm::runtime
