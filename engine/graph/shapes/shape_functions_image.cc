// Shapes of ops on pictures, boxes and sound.

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/shapes/shape_functions.h"

namespace optfarm::graph {
namespace {

// A two-element input with height and width; unknown where they are not known.
absl::StatusOr<PartialShape> HeightAndWidth(const ShapeContext& c, int i) {
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape carrier,
                           MergeShapes(c.input(i), PartialShape::Vector(2)));
  const PartialValue* value = c.value(i);
  PartialShape size = PartialShape::OfRank(2);
  for (int k = 0; k < 2 && value != nullptr; ++k) {
    const int64_t dim = value->elements[k].value_or(kUnknownDim);
    if (value->elements[k].has_value() && dim < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("a picture cannot have the size ", dim));
    }
    size.set_dim(k, dim);
  }
  return size;
}

}  // namespace

absl::Status ResizeShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, WithRank(c.input(0), 4));
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape size, HeightAndWidth(c, 1));
  out.set_dim(1, size.dim(0));
  out.set_dim(2, size.dim(1));
  c.set_output(0, std::move(out));
  for (int i = 1; i < c.output_count(); ++i) {
    c.set_output(i, PartialShape::Scalar());
  }
  return absl::OkStatus();
}

absl::Status CropAndResizeShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape image, WithRank(c.input(0), 4));
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape boxes, WithRank(c.input(1), 2));
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape index, WithRank(c.input(2), 1));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t count,
                           MergeDims(boxes.dim(0), index.dim(0)));
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape size, HeightAndWidth(c, 3));
  c.set_output(0,
               PartialShape({count, size.dim(0), size.dim(1), image.dim(3)}));
  return absl::OkStatus();
}

absl::Status DecodeImageShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t channels, c.Int("channels"));
  if (channels < 0) {
    return absl::InvalidArgumentError("the number of channels is negative");
  }
  c.set_output(0, PartialShape({kUnknownDim, kUnknownDim,
                                channels == 0 ? kUnknownDim : channels}));
  return absl::OkStatus();
}

absl::Status DecodeAnyImageShape(ShapeContext& c) {
  OPTFARM_RETURN_IF_ERROR(DecodeImageShape(c));
  OPTFARM_ASSIGN_OR_RETURN(const bool frames, c.Bool("expand_animations"));
  if (frames) c.set_output(0, PartialShape());
  return absl::OkStatus();
}

absl::Status DecodeGifShape(ShapeContext& c) {
  c.set_output(0, PartialShape({kUnknownDim, kUnknownDim, kUnknownDim, 3}));
  return absl::OkStatus();
}

absl::Status JpegShapeShape(ShapeContext& c) {
  c.set_output(0, PartialShape::Vector(3));
  return absl::OkStatus();
}

absl::Status NonMaxSuppressionShape(ShapeContext& c) {
  OPTFARM_RETURN_IF_ERROR(WithRank(c.input(0), 2).status());
  int64_t selected = kUnknownDim;
  if (FindAttrDef(c.op_def(), "pad_to_max_output_size") != nullptr) {
    OPTFARM_ASSIGN_OR_RETURN(const bool pad, c.Bool("pad_to_max_output_size"));
    if (pad) {
      OPTFARM_ASSIGN_OR_RETURN(selected, c.DimFromInput(2));
    }
  }
  c.set_output(0, PartialShape::Vector(selected));
  if (c.output_count() == 3) c.set_output(1, PartialShape::Vector(selected));
  if (c.output_count() > 1) {
    c.set_output(c.output_count() - 1, PartialShape::Scalar());
  }
  return absl::OkStatus();
}

absl::Status DistortedBoxShape(ShapeContext& c) {
  c.set_output(0, PartialShape::Vector(3));
  c.set_output(1, PartialShape::Vector(3));
  c.set_output(2, PartialShape({1, 1, 4}));
  return absl::OkStatus();
}

absl::Status GlimpseShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, WithRank(c.input(0), 4));
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape size, HeightAndWidth(c, 1));
  out.set_dim(1, size.dim(0));
  out.set_dim(2, size.dim(1));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status DecodeWavShape(ShapeContext& c) {
  OPTFARM_RETURN_IF_ERROR(WithRank(c.input(0), 0).status());
  OPTFARM_ASSIGN_OR_RETURN(const int64_t channels, c.Int("desired_channels"));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t samples, c.Int("desired_samples"));
  c.set_output(0, PartialShape::Matrix(samples >= 0 ? samples : kUnknownDim,
                                       channels >= 0 ? channels : kUnknownDim));
  c.set_output(1, PartialShape::Scalar());
  return absl::OkStatus();
}

absl::Status SpectrogramShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape audio, WithRank(c.input(0), 2));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t window, c.Int("window_size"));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t stride, c.Int("stride"));
  if (window < 1 || stride < 1 || window > (int64_t{1} << 31)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a window of ", window, " with stride ", stride, " is not possible"));
  }
  int64_t frames = kUnknownDim;
  if (audio.dim(0) != kUnknownDim) {
    frames = audio.dim(0) < window ? 0 : 1 + (audio.dim(0) - window) / stride;
  }
  int64_t fft = 1;
  while (fft < window) fft *= 2;
  c.set_output(0, PartialShape({audio.dim(1), frames, fft / 2 + 1}));
  return absl::OkStatus();
}

absl::Status MfccShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, WithRank(c.input(0), 3));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t count, c.Int("dct_coefficient_count"));
  if (count < 0) {
    return absl::InvalidArgumentError("the number of coefficients is negative");
  }
  out.set_dim(2, count);
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

}  // namespace optfarm::graph
