// DetectionPostprocess: what a single-shot detector's boxes and scores mean.
// Boxes are decoded against anchors; non-max suppression runs over the best
// score of each box, or over each class by itself ("regular").

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/lite_families.h"

namespace optfarm::runtime {
namespace {

constexpr int64_t kMostDetections = 1 << 20;

struct DetectionAttrs {
  int64_t most = 0, classes_per_box = 1, per_class = 100, classes = 0;
  bool is_regular = false;
  float least_score = 0, most_overlap = 0.5f;
  float y_scale = 1, x_scale = 1, h_scale = 1, w_scale = 1;
};

struct Box {
  float top, left, bottom, right;
};

struct Detection {
  int64_t box, class_index;
  float score;
};

float Area(const Box& box) {
  return (box.bottom - box.top) * (box.right - box.left);
}

float Overlap(const Box& a, const Box& b) {
  const float area_a = Area(a), area_b = Area(b);
  if (!(area_a > 0) || !(area_b > 0)) return 0;
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
  const float common = std::max(height, 0.0f) * std::max(width, 0.0f);
  return common / (area_a + area_b - common);
}

// Center and size relative to the anchor's, as corners.
std::vector<Box> Decoded(const Tensor& boxes, const Tensor& anchors,
                         const DetectionAttrs& attrs) {
  std::vector<Box> decoded(anchors.dim(0));
  const int64_t width = boxes.dim(2);
  for (size_t i = 0; i < decoded.size(); ++i) {
    const float* box = boxes.data<float>() + i * width;
    const float* anchor = anchors.data<float>() + i * 4;
    const float y = box[0] / attrs.y_scale * anchor[2] + anchor[0];
    const float x = box[1] / attrs.x_scale * anchor[3] + anchor[1];
    const float h = 0.5f * std::exp(box[2] / attrs.h_scale) * anchor[2];
    const float w = 0.5f * std::exp(box[3] / attrs.w_scale) * anchor[3];
    decoded[i] = {y - h, x - w, y + h, x + w};
  }
  return decoded;
}

// Boxes from the best score down, none of which overlaps a better one.
std::vector<int64_t> Suppressed(const std::vector<Box>& boxes,
                                const std::vector<float>& scores, int64_t most,
                                const DetectionAttrs& attrs) {
  std::vector<int64_t> order;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] >= attrs.least_score) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  std::vector<int64_t> chosen;
  for (const int64_t i : order) {
    if (static_cast<int64_t>(chosen.size()) >= most) break;
    const bool is_free =
        std::none_of(chosen.begin(), chosen.end(), [&](int64_t better) {
          return Overlap(boxes[better], boxes[i]) > attrs.most_overlap;
        });
    if (is_free) chosen.push_back(i);
  }
  return chosen;
}

// Each class by itself; the best of all classes together.
std::vector<Detection> DetectByClass(const std::vector<Box>& boxes,
                                     const float* scores, int64_t stride,
                                     const DetectionAttrs& attrs) {
  std::vector<Detection> found;
  std::vector<float> of_class(boxes.size());
  for (int64_t k = 0; k < attrs.classes; ++k) {
    for (size_t i = 0; i < boxes.size(); ++i) {
      of_class[i] = scores[i * stride + k];
    }
    const int64_t most = std::min(attrs.per_class, attrs.most);
    for (const int64_t i : Suppressed(boxes, of_class, most, attrs)) {
      found.push_back({i, k, of_class[i]});
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Detection& a, const Detection& b) {
                       return a.score > b.score;
                     });
    if (static_cast<int64_t>(found.size()) > attrs.most) {
      found.resize(attrs.most);
    }
  }
  return found;
}

// Over the best score of each box; each box with its best classes.
std::vector<Detection> DetectByBest(const std::vector<Box>& boxes,
                                    const float* scores, int64_t stride,
                                    const DetectionAttrs& attrs) {
  const int64_t kept = std::min(attrs.classes_per_box, attrs.classes);
  std::vector<float> best(boxes.size());
  for (size_t i = 0; i < boxes.size(); ++i) {
    best[i] = *std::max_element(scores + i * stride,
                                scores + i * stride + attrs.classes);
  }
  std::vector<Detection> found;
  std::vector<int64_t> classes(attrs.classes);
  for (const int64_t i : Suppressed(boxes, best, attrs.most, attrs)) {
    const float* of_box = scores + i * stride;
    std::iota(classes.begin(), classes.end(), 0);
    std::stable_sort(classes.begin(), classes.end(), [&](int64_t a, int64_t b) {
      return of_box[a] > of_box[b];
    });
    for (int64_t k = 0; k < kept; ++k) {
      found.push_back({i, classes[k], of_box[classes[k]]});
    }
  }
  return found;
}

absl::Status CheckInputs(const KernelContext& context,
                         const DetectionAttrs& attrs) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(context, 3));
  const Tensor& boxes = context.input(0);
  const Tensor& scores = context.input(1);
  const Tensor& anchors = context.input(2);
  for (int i = 0; i < 3; ++i) {
    OPTFARM_RETURN_IF_ERROR(
        RequireDtype(context.input(i), "input", tensorflow::DT_FLOAT));
  }
  OPTFARM_RETURN_IF_ERROR(RequireRank(boxes, "boxes", 3));
  OPTFARM_RETURN_IF_ERROR(RequireRank(scores, "scores", 3));
  OPTFARM_RETURN_IF_ERROR(RequireRank(anchors, "anchors", 2));
  if (boxes.dim(0) != 1 || scores.dim(0) != 1 || boxes.dim(2) < 4 ||
      anchors.dim(1) != 4 || boxes.dim(1) != anchors.dim(0) ||
      scores.dim(1) != anchors.dim(0) || scores.dim(2) < attrs.classes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "boxes ", boxes.shape().ToString(), ", scores ",
        scores.shape().ToString(), " and anchors ", anchors.shape().ToString(),
        " do not fit each other and ", attrs.classes, " classes"));
  }
  return absl::OkStatus();
}

absl::Status Detect(const DetectionAttrs& attrs, KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(CheckInputs(*context, attrs));
  const Tensor& scores = context->input(1);
  const std::vector<Box> boxes =
      Decoded(context->input(0), context->input(2), attrs);
  // The first columns may be of the background.
  const int64_t stride = scores.dim(2);
  const float* first = scores.data<float>() + (stride - attrs.classes);
  const std::vector<Detection> found =
      attrs.is_regular ? DetectByClass(boxes, first, stride, attrs)
                       : DetectByBest(boxes, first, stride, attrs);
  const int64_t count = attrs.most * attrs.classes_per_box;
  OPTFARM_ASSIGN_OR_RETURN(Tensor out_boxes,
                           Tensor::Zeros(tensorflow::DT_FLOAT, {1, count, 4}));
  OPTFARM_ASSIGN_OR_RETURN(Tensor out_classes,
                           Tensor::Zeros(tensorflow::DT_FLOAT, {1, count}));
  OPTFARM_ASSIGN_OR_RETURN(Tensor out_scores,
                           Tensor::Zeros(tensorflow::DT_FLOAT, {1, count}));
  const int64_t kept = std::min<int64_t>(found.size(), count);
  for (int64_t i = 0; i < kept; ++i) {
    const Box& box = boxes[found[i].box];
    float* out = out_boxes.data<float>() + 4 * i;
    out[0] = box.top;
    out[1] = box.left;
    out[2] = box.bottom;
    out[3] = box.right;
    out_classes.data<float>()[i] = static_cast<float>(found[i].class_index);
    out_scores.data<float>()[i] = found[i].score;
  }
  const int64_t per_detection =
      attrs.is_regular ? 1 : std::min(attrs.classes_per_box, attrs.classes);
  const float number = static_cast<float>(kept / per_detection);
  context->SetOutput(0, std::move(out_boxes));
  context->SetOutput(1, std::move(out_classes));
  context->SetOutput(2, std::move(out_scores));
  context->SetOutput(3, Tensor::FromValues<float>({1}, {&number, 1}));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeDetections(
    const tensorflow::NodeDef& node) {
  DetectionAttrs attrs;
  OPTFARM_ASSIGN_OR_RETURN(attrs.most, graph::GetInt(node, "max_detections"));
  OPTFARM_ASSIGN_OR_RETURN(attrs.classes, graph::GetInt(node, "num_classes"));
  OPTFARM_ASSIGN_OR_RETURN(
      attrs.classes_per_box,
      graph::GetIntOr(node, "max_classes_per_detection", 1));
  OPTFARM_ASSIGN_OR_RETURN(attrs.per_class,
                           graph::GetIntOr(node, "detections_per_class", 100));
  OPTFARM_ASSIGN_OR_RETURN(attrs.is_regular,
                           graph::GetBoolOr(node, "use_regular_nms", false));
  const struct {
    const char* name;
    float* value;
  } numbers[] = {{"nms_score_threshold", &attrs.least_score},
                 {"nms_iou_threshold", &attrs.most_overlap},
                 {"y_scale", &attrs.y_scale},
                 {"x_scale", &attrs.x_scale},
                 {"h_scale", &attrs.h_scale},
                 {"w_scale", &attrs.w_scale}};
  for (const auto& number : numbers) {
    OPTFARM_ASSIGN_OR_RETURN(
        *number.value, graph::GetFloatOr(node, number.name, *number.value));
  }
  if (attrs.most < 1 || attrs.classes < 1 || attrs.classes_per_box < 1 ||
      attrs.per_class < 0 || attrs.most > kMostDetections ||
      attrs.classes > kMostDetections ||
      attrs.classes_per_box > kMostDetections / attrs.most) {
    return absl::InvalidArgumentError(
        absl::StrCat(attrs.most, " detections of ", attrs.classes, " classes, ",
                     attrs.classes_per_box, " for each, is out of range"));
  }
  return MakeKernel(
      [attrs](KernelContext* context) { return Detect(attrs, context); });
}

}  // namespace

void AddDetectionKernels(KernelCatalog* catalog) {
  catalog->Add("DetectionPostprocess", MakeDetections);
}

}  // namespace optfarm::runtime
