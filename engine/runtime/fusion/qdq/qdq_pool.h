// Pooling of quantized values: greatest values, and means by exact sums and one
// rounding.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_QDQ_QDQ_POOL_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_QDQ_QDQ_POOL_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "engine/runtime/fusion/qdq/qdq_elements.h"
#include "engine/runtime/fusion/qdq/qdq_kernel.h"
#include "engine/runtime/reference/nn/window.h"

namespace optfarm::runtime {

struct QdqPoolPlan {
  QdqTensor in;
  QdqTensor out;
  QdqBounds bounds;
  bool is_mean = false;
  // Whether halves are rounded away from the value 0, not to even numbers.
  bool rounds_away = false;
  // Nothing for a mean over height and width of the whole image.
  std::optional<WindowAttrs> window;
  int64_t size_y = 1;
  int64_t size_x = 1;
  // Of a mean over the image: whether its axes stay, with size 1.
  bool keeps_axes = true;
};

// Windows over a tensor [batch, height, width, channels]. Where they hang over
// the border, what is not there does not count. REQUIRES: of greatest values,
// `in` and `out` are the same.
std::unique_ptr<QdqKernel> MakeQdqPool(const QdqPoolPlan& plan, QdqSteps steps);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_QDQ_QDQ_POOL_H_
