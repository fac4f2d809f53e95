#include "engine/runtime/reference/images/suppression.h"

#include <algorithm>
#include <cmath>
#include <queue>

#include "engine/runtime/core/run_bounds.h"

namespace optfarm::runtime {
namespace {

struct Candidate {
  float score = 0.0f;
  int32_t box = 0;
  // Kept boxes that it has been compared with.
  size_t compared = 0;
  // The best score first; of equal ones the first box.
  bool operator<(const Candidate& other) const {
    return score != other.score ? score < other.score : box > other.box;
  }
};

}  // namespace

float OverlapOf(const float* a, const float* b) {
  const float a_top = std::min(a[0], a[2]);
  const float a_left = std::min(a[1], a[3]);
  const float a_bottom = std::max(a[0], a[2]);
  const float a_right = std::max(a[1], a[3]);
  const float b_top = std::min(b[0], b[2]);
  const float b_left = std::min(b[1], b[3]);
  const float b_bottom = std::max(b[0], b[2]);
  const float b_right = std::max(b[1], b[3]);
  const float a_area = (a_bottom - a_top) * (a_right - a_left);
  const float b_area = (b_bottom - b_top) * (b_right - b_left);
  if (a_area <= 0 || b_area <= 0) return 0.0f;
  const float height =
      std::max(std::min(a_bottom, b_bottom) - std::max(a_top, b_top), 0.0f);
  const float width =
      std::max(std::min(a_right, b_right) - std::max(a_left, b_left), 0.0f);
  const float both = height * width;
  return both / (a_area + b_area - both);
}

KeptBoxes Suppress(absl::Span<const float> scores,
                   const SuppressionLimits& limits,
                   absl::FunctionRef<float(int32_t, int32_t)> overlap) {
  std::priority_queue<Candidate> queue;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] > limits.score) {
      queue.push({scores[i], static_cast<int32_t>(i), 0});
    }
  }
  const float scale =
      limits.soft_sigma > 0.0f ? -0.5f / limits.soft_sigma : 0.0f;
  KeptBoxes kept;
  while (static_cast<int64_t>(kept.boxes.size()) < limits.max_output &&
         !queue.empty()) {
    LeaveIfRunEnded();
    Candidate next = queue.top();
    queue.pop();
    const float before = next.score;
    bool is_dropped = false;
    for (size_t k = kept.boxes.size(); k-- > next.compared;) {
      const float shared = overlap(next.box, kept.boxes[k]);
      if (limits.soft_sigma > 0.0f) {
        next.score *=
            shared <= limits.overlap ? std::exp(scale * shared * shared) : 0.0f;
      }
      is_dropped = limits.soft_sigma > 0.0f ? next.score <= limits.score
                                            : shared > limits.overlap;
      if (is_dropped) break;
    }
    if (is_dropped) continue;
    next.compared = kept.boxes.size();
    if (next.score == before) {
      kept.boxes.push_back(next.box);
      kept.scores.push_back(next.score);
    } else if (next.score > limits.score) {
      queue.push(next);
    }
  }
  return kept;
}

}  // namespace optfarm::runtime
