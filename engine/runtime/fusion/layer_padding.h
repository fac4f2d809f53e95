// A Pad before a layer whose window can hang over the border instead.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_LAYER_PADDING_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_LAYER_PADDING_H_

#include "engine/runtime/plan/plan_editor.h"
#include "engine/runtime/reference/nn/window.h"

namespace optfarm::runtime {

// The step that pads the image which `layer` reads as input 0 with zeros around
// height and width, if nobody else sees the padded image; `window` then has the
// padding, and the layer reads the Pad's own input. kNoStep otherwise.
// REQUIRES: the data format is NHWC.
int FindPadding(const PlanEditor& plan, int layer, WindowAttrs* window);

// Step `pad` pads height and width of an image that only `reader` sees, with
// whatever value: `window` then has the padding. False for other steps.
// REQUIRES: the data format is NHWC.
bool ReadPadding(const PlanEditor& plan, int pad, int reader,
                 WindowAttrs* window);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_LAYER_PADDING_H_
