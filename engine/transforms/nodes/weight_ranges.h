// The range of a weight tensor's values, as quantize_weights and round_weights
// need it.

#ifndef OPTFARM_ENGINE_TRANSFORMS_NODES_WEIGHT_RANGES_H_
#define OPTFARM_ENGINE_TRANSFORMS_NODES_WEIGHT_RANGES_H_

#include "absl/types/span.h"

namespace optfarm::transforms {

struct WeightRange {
  float min = 0;
  float max = 0;
  // Whether a value is NaN or infinite; the range is then meaningless.
  bool has_bad_value = false;
};

// Largest and smallest value. Like TensorFlow's, `max` is at least the smallest
// positive normal float (about 1.2e-38): all-negative tensors get a range up to
// practically 0. REQUIRES: values not empty.
WeightRange FindWeightRange(absl::Span<const float> values);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_NODES_WEIGHT_RANGES_H_
