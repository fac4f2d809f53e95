// Boxes in pictures: CropAndResize cuts them out, DrawBoundingBoxes draws them.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

struct CropAttrs {
  bool is_nearest = false;
  float extrapolation_value = 0.0f;
};

// The position in the image of crop position `i` of `size`.
float CropPosition(float low, float high, int64_t in, int64_t i, int64_t size) {
  const float last = static_cast<float>(in - 1);
  if (size == 1) return 0.5f * (low + high) * last;
  const float step = (high - low) * last / static_cast<float>(size - 1);
  return low * last + static_cast<float>(i) * step;
}

// One output pixel at position (y, x), which lies inside the image.
template <typename T>
void SamplePixel(const T* image, int64_t width, int64_t channels,
                 bool is_nearest, float y, float x, float* to) {
  if (is_nearest) {
    const int64_t row = static_cast<int64_t>(std::round(y));
    const int64_t column = static_cast<int64_t>(std::round(x));
    const T* from = image + (row * width + column) * channels;
    for (int64_t c = 0; c < channels; ++c) to[c] = static_cast<float>(from[c]);
    return;
  }
  const int64_t top = static_cast<int64_t>(std::floor(y));
  const int64_t bottom = static_cast<int64_t>(std::ceil(y));
  const int64_t left = static_cast<int64_t>(std::floor(x));
  const int64_t right = static_cast<int64_t>(std::ceil(x));
  const float dy = y - static_cast<float>(top);
  const float dx = x - static_cast<float>(left);
  const auto at = [&](int64_t row, int64_t column, int64_t c) {
    return static_cast<float>(image[(row * width + column) * channels + c]);
  };
  for (int64_t c = 0; c < channels; ++c) {
    const float tl = at(top, left, c);
    const float bl = at(bottom, left, c);
    const float upper = tl + (at(top, right, c) - tl) * dx;
    const float lower = bl + (at(bottom, right, c) - bl) * dx;
    to[c] = upper + (lower - upper) * dy;
  }
}

template <typename T>
void CropBox(const T* image, const Tensor& images, const float* box,
             const Shape& crop, const CropAttrs& attrs, float* to) {
  const int64_t height = images.dim(1);
  const int64_t width = images.dim(2);
  const int64_t channels = images.dim(3);
  for (int64_t i = 0; i < crop.dim(1); ++i) {
    const float y = CropPosition(box[0], box[2], height, i, crop.dim(1));
    for (int64_t k = 0; k < crop.dim(2); ++k, to += channels) {
      const float x = CropPosition(box[1], box[3], width, k, crop.dim(2));
      // Written so that NaN lies outside.
      const bool is_inside = y >= 0.0f && y <= static_cast<float>(height - 1) &&
                             x >= 0.0f && x <= static_cast<float>(width - 1);
      if (is_inside) {
        SamplePixel(image, width, channels, attrs.is_nearest, y, x, to);
      } else {
        std::fill_n(to, channels, attrs.extrapolation_value);
      }
    }
  }
}

absl::StatusOr<Shape> CropShape(const Tensor& images, const Tensor& boxes,
                                const Tensor& numbers, const Tensor& size) {
  OPTFARM_RETURN_IF_ERROR(RequireRank(images, "image", 4));
  OPTFARM_RETURN_IF_ERROR(RequireDtype(boxes, "boxes", tensorflow::DT_FLOAT));
  OPTFARM_RETURN_IF_ERROR(RequireRank(boxes, "boxes", 2));
  OPTFARM_RETURN_IF_ERROR(RequireShape(boxes, "boxes", Shape{boxes.dim(0), 4}));
  OPTFARM_RETURN_IF_ERROR(
      RequireShape(numbers, "box_ind", Shape{boxes.dim(0)}));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                           ReadIntegers(size, "crop_size"));
  if (sizes.size() != 2 || sizes[0] < 1 || sizes[1] < 1 || images.dim(1) < 1 ||
      images.dim(2) < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("crop_size must be two values >= 1, and images of shape ",
                     images.shape().ToString(), " must not be empty"));
  }
  const int64_t dims[] = {boxes.dim(0), sizes[0], sizes[1], images.dim(3)};
  return Shape::FromDims(dims);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeCropAndResize(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  CropAttrs attrs;
  OPTFARM_ASSIGN_OR_RETURN(const std::string method,
                           graph::GetStringOr(node, "method", "bilinear"));
  if (method != "bilinear" && method != "nearest") {
    return absl::InvalidArgumentError(
        absl::StrCat("method '", method, "' is neither bilinear nor nearest"));
  }
  attrs.is_nearest = method == "nearest";
  OPTFARM_ASSIGN_OR_RETURN(attrs.extrapolation_value,
                           graph::GetFloatOr(node, "extrapolation_value", 0));
  return MakeKernel([attrs](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 4));
    const Tensor& images = context->input(0);
    const Tensor& boxes = context->input(1);
    OPTFARM_ASSIGN_OR_RETURN(
        const Shape shape,
        CropShape(images, boxes, context->input(2), context->input(3)));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers,
                             context->input(2).AsInt64s());
    for (int64_t number : numbers) {
      if (number < 0 || number >= images.dim(0)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "box_ind ", number, " is not within [0, ", images.dim(0), ")"));
      }
    }
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, tensorflow::DT_FLOAT, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    return VisitNumber(images.dtype(), "image", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      const int64_t image = DimProduct(images.shape(), 1, 4);
      const int64_t crop = DimProduct(shape, 1, 4);
      context->pool()->ParallelFor(
          shape.dim(0), 1 + 16 * 1024 / crop, [&](int64_t begin, int64_t end) {
            for (int64_t b = begin; b < end; ++b) {
              CropBox<T>(images.data<T>() + numbers[b] * image, images,
                         boxes.data<float>() + 4 * b, shape, attrs,
                         out->data<float>() + b * crop);
            }
          });
      return absl::OkStatus();
    });
  });
}

// The colours that boxes are drawn in when none are given: one after another.
constexpr float kColors[][4] = {
    {1, 1, 0, 1},       {0, 0, 1, 1},       {1, 0, 0, 1},    {0, 1, 0, 1},
    {0.5f, 0, 0.5f, 1}, {0.5f, 0.5f, 0, 1}, {0.5f, 0, 0, 1}, {0, 0, 0.5f, 1},
    {0, 1, 1, 1},       {1, 0, 1, 1}};

// One picture to draw on; lines beyond its edges are cut off.
struct Canvas {
  float* pixels;
  int64_t height;
  int64_t width;
  int64_t channels;

  void Row(int64_t y, int64_t x0, int64_t x1, const float* color) const {
    if (y < 0 || y >= height) return;
    for (int64_t x = std::max<int64_t>(x0, 0); x <= std::min(x1, width - 1);
         ++x) {
      std::copy_n(color, channels, pixels + (y * width + x) * channels);
    }
  }
};

void DrawBox(const Canvas& canvas, const float* box, const float* color) {
  const auto place = [](float part, int64_t size) {
    const float at = part * static_cast<float>(size - 1);
    // Written so that NaN and what is far outside stay small.
    if (!(at > -1e9f)) return int64_t{-1000000000};
    return static_cast<int64_t>(std::min(at, 1e9f));
  };
  const int64_t top = place(box[0], canvas.height);
  const int64_t left = place(box[1], canvas.width);
  const int64_t bottom = place(box[2], canvas.height);
  const int64_t right = place(box[3], canvas.width);
  if (top > bottom || left > right || bottom < 0 || top >= canvas.height ||
      right < 0 || left >= canvas.width) {
    return;
  }
  canvas.Row(top, left, right, color);
  canvas.Row(bottom, left, right, color);
  for (int64_t y = std::max<int64_t>(top, 0);
       y <= std::min(bottom, canvas.height - 1); ++y) {
    if (left >= 0) canvas.Row(y, left, left, color);
    if (right < canvas.width) canvas.Row(y, right, right, color);
  }
}

// The colours to use, four values each.
absl::StatusOr<std::vector<float>> ReadColors(const KernelContext& context,
                                              bool has_colors, bool is_grey) {
  std::vector<float> colors;
  if (has_colors && context.input(2).num_elements() > 0) {
    const Tensor& given = context.input(2);
    OPTFARM_RETURN_IF_ERROR(
        RequireDtype(given, "colors", tensorflow::DT_FLOAT));
    OPTFARM_RETURN_IF_ERROR(RequireRank(given, "colors", 2));
    for (int64_t i = 0; i < given.dim(0); ++i) {
      for (int64_t c = 0; c < 4; ++c) {
        colors.push_back(c < given.dim(1)
                             ? given.data<float>()[i * given.dim(1) + c]
                             : 1.0f);
      }
    }
    return colors;
  }
  for (const auto& color : kColors) {
    colors.insert(colors.end(), color, color + 4);
    // A grey picture is drawn on in white.
    if (is_grey) colors[colors.size() - 4] = 1.0f;
  }
  return colors;
}

template <bool kHasColors>
absl::StatusOr<std::unique_ptr<Kernel>> MakeDraw(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", {tensorflow::DT_FLOAT}));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, kHasColors ? 3 : 2));
    const Tensor& images = context->input(0);
    const Tensor& boxes = context->input(1);
    OPTFARM_RETURN_IF_ERROR(
        RequireDtype(images, "images", tensorflow::DT_FLOAT));
    OPTFARM_RETURN_IF_ERROR(RequireDtype(boxes, "boxes", tensorflow::DT_FLOAT));
    OPTFARM_RETURN_IF_ERROR(RequireRank(images, "images", 4));
    OPTFARM_RETURN_IF_ERROR(RequireRank(boxes, "boxes", 3));
    OPTFARM_RETURN_IF_ERROR(
        RequireShape(boxes, "boxes", Shape{images.dim(0), boxes.dim(1), 4}));
    const int64_t channels = images.dim(3);
    if (channels != 1 && channels != 3 && channels != 4) {
      return absl::InvalidArgumentError(absl::StrCat(
          "images must have 1, 3 or 4 channels, but have ", channels));
    }
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<float> colors,
                             ReadColors(*context, kHasColors, channels == 1));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out,
        context->AllocateOutput(0, images.dtype(), images.shape()));
    std::copy_n(images.data<float>(), images.num_elements(),
                out->data<float>());
    const int64_t image = DimProduct(images.shape(), 1, 4);
    for (int64_t i = 0; i < images.dim(0) * boxes.dim(1); ++i) {
      const int64_t n = i / boxes.dim(1);
      const size_t number = static_cast<size_t>(i % boxes.dim(1));
      const Canvas canvas{out->data<float>() + n * image, images.dim(1),
                          images.dim(2), channels};
      DrawBox(canvas, boxes.data<float>() + 4 * i,
              &colors[number % (colors.size() / 4) * 4]);
    }
    return absl::OkStatus();
  });
}

}  // namespace

void AddBoxKernels(KernelCatalog* catalog) {
  catalog->Add("CropAndResize", MakeCropAndResize);
  catalog->Add("DrawBoundingBoxes", MakeDraw<false>);
  catalog->Add("DrawBoundingBoxesV2", MakeDraw<true>);
}

}  // namespace optfarm::runtime
