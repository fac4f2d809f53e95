// Conv2D with constant filters, and what follows it, as one kernel.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_FLOAT_CONVOLUTION_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_FLOAT_CONVOLUTION_H_

#include <memory>
#include <vector>

#include "engine/runtime/core/kernel.h"
#include "engine/runtime/operators/float_panels.h"
#include "engine/runtime/plan/step_chain.h"
#include "engine/runtime/reference/nn/window.h"

namespace optfarm::runtime {

struct FloatConvolution {
  WindowAttrs window;
  // Of the filters: height, width, channels, filters.
  Shape filter_shape;
  FloatPanels panels;
  PackedWeights packed;
  // As PadColumns makes them; empty for none.
  std::vector<float> scale;
  std::vector<float> bias;
  bool has_residual = false;
  Rectifier rectifier = Rectifier::kNone;
  // Runs what the fast kernel does not: groups of channels, sums that
  // broadcast, inputs that do not fit.
  StepChain chain;
};

// A kernel whose inputs are the image and, where there is one, the residual.
// REQUIRES: the window's data format is NHWC.
std::unique_ptr<Kernel> MakeFloatConvolution(FloatConvolution convolution);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_FLOAT_CONVOLUTION_H_
