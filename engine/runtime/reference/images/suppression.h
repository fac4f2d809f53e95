// Non-maximum suppression itself, whatever says which boxes overlap.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_IMAGES_SUPPRESSION_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_IMAGES_SUPPRESSION_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

namespace optfarm::runtime {

struct SuppressionLimits {
  int64_t max_output = 0;
  float overlap = 0.5f;
  float score = -std::numeric_limits<float>::infinity();
  // Above 0: overlapping boxes lose score instead of being dropped (Bodla et
  // al., "Soft-NMS", ICCV 2017).
  float soft_sigma = 0.0f;
};

struct KeptBoxes {
  std::vector<int32_t> boxes;
  std::vector<float> scores;
};

// Intersection over union of boxes given by two opposite corners.
float OverlapOf(const float* a, const float* b);

// The boxes in the order of their scores, each kept unless it overlaps a kept
// one too much; leaves a run that is to end.
KeptBoxes Suppress(absl::Span<const float> scores,
                   const SuppressionLimits& limits,
                   absl::FunctionRef<float(int32_t, int32_t)> overlap);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_IMAGES_SUPPRESSION_H_
