// RoiAlign: regions of feature maps, each averaged into an image of one size
// (He et al., "Mask R-CNN"), and ONNX's suppression of overlapping boxes by
// class.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/counted_vector.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/images/suppression.h"

namespace optfarm::runtime {
namespace {

struct RoiAttributes {
  bool takes_max = false;
  // Pixels are squares around their positions, not corners of squares.
  bool half_pixel = true;
  int64_t height = 1;
  int64_t width = 1;
  // Samples along each side of a cell; 0: about one for each pixel.
  int64_t samples = 0;
  double scale = 1.0;
};

// More samples than pixels bring nothing; hostile regions could ask for them.
constexpr double kMaxSamples = 1024.0;
constexpr int64_t kMaxCells = 4096;

// The pixels around a position and their weights; none outside of the image.
struct Corners {
  std::array<int64_t, 4> at = {};
  std::array<double, 4> weight = {};
};

Corners CornersAt(double y, double x, int64_t height, int64_t width) {
  Corners corners;
  const double last_y = static_cast<double>(height - 1);
  const double last_x = static_cast<double>(width - 1);
  if (!(y >= -1.0 && y <= last_y + 1.0 && x >= -1.0 && x <= last_x + 1.0)) {
    return corners;
  }
  y = std::clamp(y, 0.0, last_y);
  x = std::clamp(x, 0.0, last_x);
  const auto top = static_cast<int64_t>(y);
  const auto left = static_cast<int64_t>(x);
  const int64_t bottom = std::min(top + 1, height - 1);
  const int64_t right = std::min(left + 1, width - 1);
  const double down = y - static_cast<double>(top);
  const double over = x - static_cast<double>(left);
  corners.at = {top * width + left, top * width + right, bottom * width + left,
                bottom * width + right};
  corners.weight = {(1 - down) * (1 - over), (1 - down) * over,
                    down * (1 - over), down * over};
  return corners;
}

// One side of a region: where it starts, how long a cell is, samples in it.
struct Side {
  double start = 0.0;
  double cell = 0.0;
  int64_t samples = 0;

  double At(int64_t c, int64_t s) const {
    return start + static_cast<double>(c) * cell +
           (static_cast<double>(s) + 0.5) * cell / static_cast<double>(samples);
  }
};

Side SideOf(const RoiAttributes& roi, double from, double to, int64_t cells) {
  const double offset = roi.half_pixel ? 0.5 : 0.0;
  Side side;
  side.start = from * roi.scale - offset;
  double size = to * roi.scale - offset - side.start;
  if (!roi.half_pixel) size = std::max(size, 1.0);
  side.cell = size / static_cast<double>(cells);
  // Written so that a size that is no number has no samples.
  const double wanted = std::ceil(side.cell);
  side.samples = roi.samples > 0 ? roi.samples
                 : wanted > 0.0
                     ? static_cast<int64_t>(std::min(wanted, kMaxSamples))
                     : 0;
  return side;
}

// Sample positions are the same for all channels.
CountedVector<Corners> CellCorners(const Side& rows, const Side& columns,
                                   int64_t row, int64_t column, int64_t height,
                                   int64_t width) {
  CountedVector<Corners> corners;
  for (int64_t sy = 0; sy < rows.samples; ++sy) {
    LeaveIfRunEnded();
    for (int64_t sx = 0; sx < columns.samples; ++sx) {
      corners.push_back(
          CornersAt(rows.At(row, sy), columns.At(column, sx), height, width));
    }
  }
  return corners;
}

// The mean of the interpolated samples. The maximum is taken over the weighted
// pixels, as ONNX's test cases have it.
template <typename T>
T Pooled(const T* image, const CountedVector<Corners>& samples, bool is_max) {
  if (samples.empty()) return T(0);
  double sum = 0.0;
  double max = -std::numeric_limits<double>::infinity();
  for (const Corners& sample : samples) {
    for (int k = 0; k < 4; ++k) {
      const double part =
          sample.weight[k] * static_cast<double>(image[sample.at[k]]);
      sum += part;
      max = std::max(max, part);
    }
  }
  return static_cast<T>(is_max ? max
                               : sum / static_cast<double>(samples.size()));
}

template <typename T>
absl::Status AlignAll(const RoiAttributes& roi, const Tensor& x,
                      const Tensor& rois, const std::vector<int64_t>& batches,
                      Tensor* out) {
  const int64_t channels = x.dim(1);
  const int64_t height = x.dim(2);
  const int64_t width = x.dim(3);
  T* to = out->data<T>();
  for (int64_t r = 0; r < rois.dim(0); ++r) {
    const T* box = rois.data<T>() + r * 4;
    const Side rows = SideOf(roi, static_cast<double>(box[1]),
                             static_cast<double>(box[3]), roi.height);
    const Side columns = SideOf(roi, static_cast<double>(box[0]),
                                static_cast<double>(box[2]), roi.width);
    for (int64_t cell = 0; cell < roi.height * roi.width; ++cell) {
      const auto samples = CellCorners(rows, columns, cell / roi.width,
                                       cell % roi.width, height, width);
      for (int64_t c = 0; c < channels; ++c) {
        const T* image =
            x.data<T>() + (batches[r] * channels + c) * height * width;
        to[(r * channels + c) * roi.height * roi.width + cell] =
            Pooled(image, samples, roi.takes_max);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ComputeRoiAlign(const RoiAttributes& roi, KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
  const Tensor& x = context->input(0);
  const Tensor& rois = context->input(1);
  OPTFARM_RETURN_IF_ERROR(RequireRank(x, "x", 4));
  OPTFARM_RETURN_IF_ERROR(RequireSameDtype(x, rois));
  OPTFARM_RETURN_IF_ERROR(RequireRank(rois, "rois", 2));
  if (rois.dim(1) != 4) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'rois' must have 4 columns, but has shape ", rois.shape().ToString()));
  }
  OPTFARM_RETURN_IF_ERROR(
      RequireShape(context->input(2), "batch_indices", {rois.dim(0)}));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> batches,
                           context->input(2).AsInt64s());
  for (int64_t batch : batches) {
    if (batch < 0 || batch >= x.dim(0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "batch index ", batch, " is not within [0, ", x.dim(0), ")"));
    }
  }
  const int64_t dims[] = {rois.dim(0), x.dim(1), roi.height, roi.width};
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  if (x.num_elements() == 0 && shape.num_elements() > 0) {
    return absl::InvalidArgumentError("'x' has no pixels");
  }
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(0, x.dtype(), shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  return VisitFloat(x.dtype(), "x", [&](auto tag) -> absl::Status {
    return AlignAll<typename decltype(tag)::type>(roi, x, rois, batches, out);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeRoiAlign(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  RoiAttributes roi;
  OPTFARM_ASSIGN_OR_RETURN(const std::string mode,
                           graph::GetStringOr(node, "mode", "avg"));
  if (mode != "avg" && mode != "max") {
    return absl::UnimplementedError(
        absl::StrCat("mode '", mode, "' is neither avg nor max"));
  }
  roi.takes_max = mode == "max";
  OPTFARM_ASSIGN_OR_RETURN(roi.half_pixel,
                           graph::GetBoolOr(node, "half_pixel", true));
  OPTFARM_ASSIGN_OR_RETURN(roi.height,
                           graph::GetIntOr(node, "output_height", 1));
  OPTFARM_ASSIGN_OR_RETURN(roi.width, graph::GetIntOr(node, "output_width", 1));
  OPTFARM_ASSIGN_OR_RETURN(roi.samples,
                           graph::GetIntOr(node, "sampling_ratio", 0));
  OPTFARM_ASSIGN_OR_RETURN(const float scale,
                           graph::GetFloatOr(node, "spatial_scale", 1.0f));
  roi.scale = static_cast<double>(scale);
  if (roi.height < 1 || roi.width < 1 || roi.samples < 0 ||
      roi.height > kMaxCells || roi.width > kMaxCells ||
      static_cast<double>(roi.samples) > kMaxSamples) {
    return absl::InvalidArgumentError(
        absl::StrCat("regions of ", roi.height, " x ", roi.width,
                     " cells with ", roi.samples, " samples are not possible"));
  }
  return MakeKernel(
      [roi](KernelContext* context) { return ComputeRoiAlign(roi, context); });
}

// Corners of boxes that are given by center and size.
std::vector<float> CornersOfCentered(const float* boxes, int64_t count) {
  std::vector<float> corners(4 * count);
  for (int64_t i = 0; i < count; ++i) {
    const float* box = boxes + 4 * i;
    corners[4 * i] = box[1] - box[3] / 2;
    corners[4 * i + 1] = box[0] - box[2] / 2;
    corners[4 * i + 2] = box[1] + box[3] / 2;
    corners[4 * i + 3] = box[0] + box[2] / 2;
  }
  return corners;
}

absl::StatusOr<SuppressionLimits> ReadLimits(const KernelContext& context) {
  SuppressionLimits limits;
  OPTFARM_ASSIGN_OR_RETURN(limits.max_output,
                           ReadInteger(context.input(2), "max_output"));
  for (int i : {3, 4}) {
    const char* name = i == 3 ? "iou_threshold" : "score_threshold";
    OPTFARM_RETURN_IF_ERROR(RequireOneElement(context.input(i), name));
    OPTFARM_RETURN_IF_ERROR(
        RequireDtype(context.input(i), name, tensorflow::DT_FLOAT));
  }
  limits.overlap = context.input(3).data<float>()[0];
  limits.score = context.input(4).data<float>()[0];
  return limits;
}

absl::Status ComputeSuppression(bool centered, KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 5));
  const Tensor& boxes = context->input(0);
  const Tensor& scores = context->input(1);
  OPTFARM_RETURN_IF_ERROR(RequireDtype(boxes, "boxes", tensorflow::DT_FLOAT));
  OPTFARM_RETURN_IF_ERROR(RequireDtype(scores, "scores", tensorflow::DT_FLOAT));
  OPTFARM_RETURN_IF_ERROR(RequireRank(scores, "scores", 3));
  const int64_t batch = scores.dim(0);
  const int64_t classes = scores.dim(1);
  const int64_t count = scores.dim(2);
  if (boxes.rank() != 3 || boxes.dim(0) != batch || boxes.dim(1) != count ||
      boxes.dim(2) != 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("'boxes' of shape ", boxes.shape().ToString(),
                     " does not hold a box for each score of shape ",
                     scores.shape().ToString()));
  }
  if (count > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat(count, " boxes"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const SuppressionLimits limits,
                           ReadLimits(*context));
  CountedVector<int64_t> kept;
  for (int64_t b = 0; count > 0 && b < batch; ++b) {
    const float* corners = boxes.data<float>() + b * count * 4;
    std::vector<float> converted;
    if (centered) {
      converted = CornersOfCentered(corners, count);
      corners = converted.data();
    }
    for (int64_t c = 0; c < classes; ++c) {
      const KeptBoxes of_class =
          Suppress(absl::MakeConstSpan(
                       scores.data<float>() + (b * classes + c) * count, count),
                   limits, [corners](int32_t i, int32_t k) {
                     return OverlapOf(corners + 4 * i, corners + 4 * k);
                   });
      for (int32_t box : of_class.boxes) {
        kept.insert(kept.end(), {b, c, int64_t{box}});
      }
    }
  }
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * out,
      context->AllocateOutput(0, tensorflow::DT_INT64,
                              {static_cast<int64_t>(kept.size()) / 3, 3}));
  std::copy(kept.begin(), kept.end(), out->data<int64_t>());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSuppression(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const bool centered,
                           graph::GetBoolOr(node, "centered", false));
  return MakeKernel([centered](KernelContext* context) {
    return ComputeSuppression(centered, context);
  });
}

}  // namespace

void AddRegionKernels(KernelCatalog* catalog) {
  catalog->Add("MultiClassNonMaxSuppression", MakeSuppression);
  catalog->Add("RoiAlign", MakeRoiAlign);
}

}  // namespace optfarm::runtime
