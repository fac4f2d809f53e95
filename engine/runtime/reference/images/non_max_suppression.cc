// Non-maximum suppression: boxes in the order of their scores, each kept unless
// it overlaps a kept one too much. All versions of TensorFlow's op, and
// CombinedNonMaxSuppression, which does it per class and image.

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/images/suppression.h"

namespace optfarm::runtime {
namespace {

absl::StatusOr<float> ReadFloat(const Tensor& tensor, absl::string_view name) {
  OPTFARM_RETURN_IF_ERROR(RequireOneElement(tensor, name));
  OPTFARM_RETURN_IF_ERROR(RequireDtype(tensor, name, tensorflow::DT_FLOAT));
  return *tensor.data<float>();
}

absl::StatusOr<float> ReadOverlap(const Tensor& tensor) {
  OPTFARM_ASSIGN_OR_RETURN(const float overlap,
                           ReadFloat(tensor, "iou_threshold"));
  if (overlap >= 0.0f && overlap <= 1.0f) return overlap;
  return absl::InvalidArgumentError(
      absl::StrCat("iou_threshold must be within [0, 1], but is ", overlap));
}

absl::Status RequireScores(const Tensor& boxes, const Tensor& scores) {
  OPTFARM_RETURN_IF_ERROR(RequireDtype(boxes, "boxes", tensorflow::DT_FLOAT));
  OPTFARM_RETURN_IF_ERROR(RequireDtype(scores, "scores", tensorflow::DT_FLOAT));
  OPTFARM_RETURN_IF_ERROR(RequireRank(boxes, "boxes", 2));
  if (boxes.dim(0) > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError("there are too many boxes");
  }
  return RequireShape(scores, "scores", Shape{boxes.dim(0)});
}

// The limits that come as inputs from number 2 on, as far as there are any.
absl::StatusOr<SuppressionLimits> ReadLimits(const KernelContext& context,
                                             SuppressionLimits limits) {
  OPTFARM_ASSIGN_OR_RETURN(limits.max_output,
                           ReadInteger(context.input(2), "max_output_size"));
  if (limits.max_output < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_output_size must not be negative, but is ", limits.max_output));
  }
  if (context.num_inputs() > 3) {
    OPTFARM_ASSIGN_OR_RETURN(limits.overlap, ReadOverlap(context.input(3)));
  }
  if (context.num_inputs() > 4) {
    OPTFARM_ASSIGN_OR_RETURN(limits.score,
                             ReadFloat(context.input(4), "score_threshold"));
  }
  if (context.num_inputs() > 5) {
    OPTFARM_ASSIGN_OR_RETURN(limits.soft_sigma,
                             ReadFloat(context.input(5), "soft_nms_sigma"));
  }
  return limits;
}

struct Version {
  int inputs = 3;
  bool has_scores = false;
  bool has_count = false;
  bool is_padded = false;
  SuppressionLimits limits;
};

absl::Status StoreKept(KeptBoxes kept, const Version& version,
                       const SuppressionLimits& limits,
                       KernelContext* context) {
  const int32_t count = static_cast<int32_t>(kept.boxes.size());
  if (version.is_padded) {
    // More are taken for an attack on memory.
    if (limits.max_output > (int64_t{1} << 24)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "max_output_size ", limits.max_output, " is too large to pad to"));
    }
    kept.boxes.resize(limits.max_output, 0);
    kept.scores.resize(limits.max_output, 0.0f);
  }
  const Shape shape{static_cast<int64_t>(kept.boxes.size())};
  context->SetOutput(0, Tensor::FromValues<int32_t>(shape, kept.boxes));
  int next = 1;
  if (version.has_scores) {
    context->SetOutput(next++, Tensor::FromValues<float>(shape, kept.scores));
  }
  if (version.has_count) {
    context->SetOutput(next, Tensor::Scalar<int32_t>(count));
  }
  return absl::OkStatus();
}

std::unique_ptr<Kernel> MakeSuppression(const Version& version) {
  return MakeKernel([version](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, version.inputs));
    const int outputs =
        1 + (version.has_scores ? 1 : 0) + (version.has_count ? 1 : 0);
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, outputs));
    const Tensor& boxes = context->input(0);
    const Tensor& scores = context->input(1);
    OPTFARM_RETURN_IF_ERROR(RequireScores(boxes, scores));
    OPTFARM_RETURN_IF_ERROR(
        RequireShape(boxes, "boxes", Shape{boxes.dim(0), 4}));
    OPTFARM_ASSIGN_OR_RETURN(const SuppressionLimits limits,
                             ReadLimits(*context, version.limits));
    const float* corners = boxes.data<float>();
    return StoreKept(Suppress(scores.flat<float>(), limits,
                              [&](int32_t a, int32_t b) {
                                return OverlapOf(corners + 4 * int64_t{a},
                                                 corners + 4 * int64_t{b});
                              }),
                     version, limits, context);
  });
}

// `version` is that of the op, 1 to 5.
template <int kVersion>
absl::StatusOr<std::unique_ptr<Kernel>> MakeNonMaxSuppression(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", {tensorflow::DT_FLOAT}));
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "T_threshold", {tensorflow::DT_FLOAT}));
  Version version;
  constexpr int kInputs[] = {3, 4, 5, 5, 6};
  version.inputs = kInputs[kVersion - 1];
  version.has_scores = kVersion == 5;
  version.has_count = kVersion >= 4;
  OPTFARM_ASSIGN_OR_RETURN(
      version.is_padded,
      graph::GetBoolOr(node, "pad_to_max_output_size", false));
  OPTFARM_ASSIGN_OR_RETURN(version.limits.overlap,
                           graph::GetFloatOr(node, "iou_threshold", 0.5f));
  return MakeSuppression(version);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeWithOverlaps(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 5));
    const Tensor& overlaps = context->input(0);
    const Tensor& scores = context->input(1);
    OPTFARM_RETURN_IF_ERROR(RequireScores(overlaps, scores));
    const int64_t count = overlaps.dim(0);
    OPTFARM_RETURN_IF_ERROR(
        RequireShape(overlaps, "overlaps", Shape{count, count}));
    SuppressionLimits limits;
    OPTFARM_ASSIGN_OR_RETURN(limits.max_output,
                             ReadInteger(context->input(2), "max_output_size"));
    OPTFARM_ASSIGN_OR_RETURN(limits.overlap,
                             ReadFloat(context->input(3), "overlap_threshold"));
    OPTFARM_ASSIGN_OR_RETURN(limits.score,
                             ReadFloat(context->input(4), "score_threshold"));
    return StoreKept(Suppress(scores.flat<float>(), limits,
                              [&](int32_t a, int32_t b) {
                                return overlaps.data<float>()[a * count + b];
                              }),
                     Version(), limits, context);
  });
}

struct CombinedAttrs {
  bool pad_per_class = false;
  bool clip_boxes = true;
};

struct Detection {
  float score = 0.0f;
  int32_t label = 0;
  const float* box = nullptr;
};

// The detections of one image, the best first. `boxes` is [boxes, q, 4] with q
// 1 or the number of classes; `scores` is [boxes, classes].
std::vector<Detection> DetectInImage(const float* boxes, const float* scores,
                                     const Shape& shape, int64_t classes,
                                     const SuppressionLimits& limits) {
  const int64_t count = shape.dim(1);
  const int64_t q = shape.dim(2);
  std::vector<Detection> found;
  std::vector<float> own(count);
  for (int64_t c = 0; c < classes; ++c) {
    for (int64_t i = 0; i < count; ++i) own[i] = scores[i * classes + c];
    const auto box = [&](int64_t i) {
      return boxes + (i * q + (q == 1 ? 0 : c)) * 4;
    };
    const KeptBoxes kept = Suppress(own, limits, [&](int32_t a, int32_t b) {
      return OverlapOf(box(a), box(b));
    });
    for (size_t k = 0; k < kept.boxes.size(); ++k) {
      found.push_back(
          {kept.scores[k], static_cast<int32_t>(c), box(kept.boxes[k])});
    }
  }
  std::stable_sort(
      found.begin(), found.end(),
      [](const Detection& a, const Detection& b) { return a.score > b.score; });
  return found;
}

class CombinedSuppression final : public Kernel {
 public:
  explicit CombinedSuppression(const CombinedAttrs& attrs) : attrs_(attrs) {}

  absl::Status Compute(KernelContext* context) const override {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 6));
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 4));
    const Tensor& boxes = context->input(0);
    const Tensor& scores = context->input(1);
    OPTFARM_RETURN_IF_ERROR(RequireDtype(boxes, "boxes", tensorflow::DT_FLOAT));
    OPTFARM_RETURN_IF_ERROR(
        RequireDtype(scores, "scores", tensorflow::DT_FLOAT));
    OPTFARM_RETURN_IF_ERROR(RequireRank(boxes, "boxes", 4));
    OPTFARM_RETURN_IF_ERROR(RequireRank(scores, "scores", 3));
    const int64_t batch = boxes.dim(0);
    const int64_t classes = scores.dim(2);
    OPTFARM_RETURN_IF_ERROR(
        RequireShape(scores, "scores", Shape{batch, boxes.dim(1), classes}));
    if (boxes.dim(3) != 4 || (boxes.dim(2) != 1 && boxes.dim(2) != classes)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "boxes of shape ", boxes.shape().ToString(),
          " do not fit scores of shape ", scores.shape().ToString()));
    }
    SuppressionLimits limits;
    OPTFARM_ASSIGN_OR_RETURN(
        limits.max_output,
        ReadInteger(context->input(2), "max_output_size_per_class"));
    OPTFARM_ASSIGN_OR_RETURN(int64_t total,
                             ReadInteger(context->input(3), "max_total_size"));
    OPTFARM_ASSIGN_OR_RETURN(limits.overlap, ReadOverlap(context->input(4)));
    OPTFARM_ASSIGN_OR_RETURN(limits.score,
                             ReadFloat(context->input(5), "score_threshold"));
    if (limits.max_output < 1 || total < 1) {
      return absl::InvalidArgumentError(
          "max_output_size_per_class and max_total_size must be at least 1");
    }
    if (attrs_.pad_per_class) {
      int64_t all = 0;
      if (!__builtin_mul_overflow(limits.max_output, classes, &all)) {
        total = std::min(total, all);
      }
    }
    return Detect(boxes, scores, limits, total, context);
  }

 private:
  absl::Status Detect(const Tensor& boxes, const Tensor& scores,
                      const SuppressionLimits& limits, int64_t total,
                      KernelContext* context) const {
    const int64_t batch = boxes.dim(0);
    const int64_t rows[] = {batch, total};
    const int64_t fours[] = {batch, total, 4};
    OPTFARM_ASSIGN_OR_RETURN(const Shape row_shape, Shape::FromDims(rows));
    OPTFARM_ASSIGN_OR_RETURN(const Shape box_shape, Shape::FromDims(fours));
    OPTFARM_ASSIGN_OR_RETURN(Tensor out_boxes,
                             Tensor::Zeros(tensorflow::DT_FLOAT, box_shape));
    OPTFARM_ASSIGN_OR_RETURN(Tensor out_scores,
                             Tensor::Zeros(tensorflow::DT_FLOAT, row_shape));
    OPTFARM_ASSIGN_OR_RETURN(Tensor out_classes,
                             Tensor::Zeros(tensorflow::DT_FLOAT, row_shape));
    std::vector<int32_t> valid(batch, 0);
    for (int64_t n = 0; n < batch; ++n) {
      const std::vector<Detection> found = DetectInImage(
          boxes.data<float>() + n * DimProduct(boxes.shape(), 1, 4),
          scores.data<float>() + n * DimProduct(scores.shape(), 1, 3),
          boxes.shape(), scores.dim(2), limits);
      const int64_t count =
          std::min<int64_t>(total, static_cast<int64_t>(found.size()));
      valid[n] = static_cast<int32_t>(count);
      for (int64_t i = 0; i < count; ++i) {
        float* to = out_boxes.data<float>() + (n * total + i) * 4;
        for (int k = 0; k < 4; ++k) {
          const float edge = found[i].box[k];
          to[k] =
              attrs_.clip_boxes ? std::max(0.0f, std::min(1.0f, edge)) : edge;
        }
        out_scores.data<float>()[n * total + i] = found[i].score;
        out_classes.data<float>()[n * total + i] =
            static_cast<float>(found[i].label);
      }
    }
    context->SetOutput(0, std::move(out_boxes));
    context->SetOutput(1, std::move(out_scores));
    context->SetOutput(2, std::move(out_classes));
    context->SetOutput(3, Tensor::FromValues<int32_t>(Shape{batch}, valid));
    return absl::OkStatus();
  }

  CombinedAttrs attrs_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeCombined(
    const tensorflow::NodeDef& node) {
  CombinedAttrs attrs;
  OPTFARM_ASSIGN_OR_RETURN(attrs.pad_per_class,
                           graph::GetBoolOr(node, "pad_per_class", false));
  OPTFARM_ASSIGN_OR_RETURN(attrs.clip_boxes,
                           graph::GetBoolOr(node, "clip_boxes", true));
  return std::make_unique<CombinedSuppression>(attrs);
}

}  // namespace

void AddNonMaxSuppressionKernels(KernelCatalog* catalog) {
  catalog->Add("NonMaxSuppression", MakeNonMaxSuppression<1>);
  catalog->Add("NonMaxSuppressionV2", MakeNonMaxSuppression<2>);
  catalog->Add("NonMaxSuppressionV3", MakeNonMaxSuppression<3>);
  catalog->Add("NonMaxSuppressionV4", MakeNonMaxSuppression<4>);
  catalog->Add("NonMaxSuppressionV5", MakeNonMaxSuppression<5>);
  catalog->Add("NonMaxSuppressionWithOverlaps", MakeWithOverlaps);
  catalog->Add("CombinedNonMaxSuppression", MakeCombined);
}

}  // namespace optfarm::runtime
