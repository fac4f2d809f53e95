// What a detector finds, before and after: boxes are matched by place and
// class, because a list that is sorted by scores cannot be compared position by
// position, where two equal scores that change places count as errors.

#ifndef OPTFARM_ENGINE_OPTIMIZE_JUDGING_DETECTIONS_H_
#define OPTFARM_ENGINE_OPTIMIZE_JUDGING_DETECTIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/graph/tensor_name.h"
#include "engine/runtime/core/tensor.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::optimize {

// Which outputs are a detector's, as places among the outputs.
struct Detector {
  size_t boxes = 0;
  size_t scores = 0;
  size_t classes = 0;
  // What goes into the selection of boxes (NonMaxSuppression, TopK and the
  // loops around them): float tensors that can be compared number by number.
  std::vector<graph::TensorName> raw;
};

// nullopt unless one output each is named after boxes, scores and classes and
// boxes are selected between the net and them. Cost: linear.
// ERRORS as nullopt: a cyclic graph.
std::optional<Detector> FindDetector(
    const graph::Graph& graph, absl::Span<const graph::TensorName> outputs);

// Adds up over samples what original and result find. A detection of the one
// counts when its score is at least kSure; the other has found it too when it
// has one of the same class with at least half of that score, the boxes'
// intersection at least half of their union. Each is matched once, the surest
// first.
class DetectionComparer {
 public:
  static constexpr float kSure = 0.5f;

  // Outputs of one sample, in the order of `detector`'s places. False, and
  // nothing is counted, when they are not boxes [.., n, 4] with n scores and n
  // classes.
  bool Add(const Detector& detector, absl::Span<const runtime::Tensor> original,
           absl::Span<const runtime::Tensor> result);

  v1::DetectionComparison Result() const;

 private:
  int64_t samples_ = 0;
  int64_t original_ = 0;
  int64_t found_ = 0;
  int64_t result_ = 0;
  int64_t extra_ = 0;
  double iou_sum_ = 0;
  double score_change_sum_ = 0;
};

// "found 96.2 % of 132, 3.1 % of 128 are new, mean IoU 0.93, scores change by
// 0.021".
std::string Describe(const v1::DetectionComparison& detections);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_JUDGING_DETECTIONS_H_
