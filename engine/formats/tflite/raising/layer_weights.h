// Weights and biases of layers as operators want them.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_LAYER_WEIGHTS_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_LAYER_WEIGHTS_H_

#include "absl/status/statusor.h"
#include "engine/formats/tflite/raising/constant.h"
#include "engine/formats/tflite/raising/model_draft.h"
#include "engine/formats/tflite/raising/node_raiser.h"

namespace optfarm::formats::tflite_raising {

// A layer's constant weights in the operator's layout.
struct LayerWeights {
  Constant constant;
  // The dimension of the output channels.
  int channel_axis = 0;
  // Whether several scales may be used; some operators take one only.
  bool takes_channel_scales = true;
};

// Whether an operator on quantized values can multiply with them: one scale or
// one for each output channel, no zero point unless values are unsigned.
bool CanMultiplyQuantized(const LayerWeights& weights, bool shifts_to_signed);

// The weights' tensor for the layer, widened or quantized as the layer and the
// options ask. Sets *is_hybrid where activations are quantized when the model
// runs.
TensorId WeightsTensor(NodeRaiser& node, const Layer& layer,
                       LayerWeights weights, bool* is_hybrid);

// The bias' tensor: float, or with the scales of the products. Zeros for a
// layer without bias.
// ERRORS: Unimplemented for a bias that cannot be read as real numbers.
absl::StatusOr<TensorId> BiasTensor(NodeRaiser& node, const Layer& layer,
                                    TensorId weights, int64_t channels);

}  // namespace optfarm::formats::tflite_raising

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_LAYER_WEIGHTS_H_
