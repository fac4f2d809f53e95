#include "engine/graph/shapes/lite_shapes.h"

#include <cstdint>
#include <utility>

#include "base/status_macros.h"
#include "engine/graph/partial_shape.h"

namespace optfarm::graph {

absl::Status LiteLstmShape(ShapeContext& c) {
  PartialShape y = c.input(0);
  const PartialShape h = c.input(1);
  if (y.has_rank() && y.rank() > 0) {
    const bool is_known = h.has_rank() && h.rank() > 0;
    y.set_dim(y.rank() - 1, is_known ? h.dim(h.rank() - 1) : -1);
  }
  c.set_output(0, std::move(y));
  c.set_output(1, h);
  c.set_output(2, c.input(2));
  return absl::OkStatus();
}

absl::Status DetectionPostprocessShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t most, c.Int("max_detections"));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t classes,
                           c.Int("max_classes_per_detection"));
  constexpr int64_t kSane = 1 << 20;
  const bool is_sane =
      most >= 0 && classes >= 0 && most <= kSane && classes <= kSane;
  const int64_t count = is_sane ? most * classes : -1;
  c.set_output(0, PartialShape({1, count, 4}));
  c.set_output(1, PartialShape({1, count}));
  c.set_output(2, PartialShape({1, count}));
  c.set_output(3, PartialShape({1}));
  return absl::OkStatus();
}

}  // namespace optfarm::graph
