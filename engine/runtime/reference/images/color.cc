// Colours: RGBToHSV, HSVToRGB, AdjustContrastv2, AdjustHue, AdjustSaturation.
// The last dimension is red, green, blue (or hue, saturation, value).

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

template <typename T>
struct Color {
  T a;
  T b;
  T c;
};

// Hue, saturation and value, each within [0, 1].
template <typename T>
Color<T> ToHsv(const Color<T>& rgb) {
  const T value = std::max({rgb.a, rgb.b, rgb.c});
  const T range = value - std::min({rgb.a, rgb.b, rgb.c});
  const T saturation = value > T(0) ? range / value : T(0);
  T hue = T(0);
  if (range > T(0)) {
    const T sixth = T(1) / (T(6) * range);
    if (rgb.a == value) {
      hue = sixth * (rgb.b - rgb.c);
    } else if (rgb.b == value) {
      hue = sixth * (rgb.c - rgb.a) + T(2) / T(6);
    } else {
      hue = sixth * (rgb.a - rgb.b) + T(4) / T(6);
    }
    if (hue < T(0)) hue += T(1);
  }
  return {hue, saturation, value};
}

template <typename T>
Color<T> ToRgb(const Color<T>& hsv) {
  const T sixths = hsv.a * T(6);
  const auto clamp = [](T x) { return std::min(std::max(x, T(0)), T(1)); };
  const T red = clamp(std::abs(sixths - T(3)) - T(1));
  const T green = clamp(T(2) - std::abs(sixths - T(2)));
  const T blue = clamp(T(2) - std::abs(sixths - T(4)));
  const T floor = T(1) - hsv.b;
  return {(floor + hsv.b * red) * hsv.c, (floor + hsv.b * green) * hsv.c,
          (floor + hsv.b * blue) * hsv.c};
}

absl::Status RequireColors(const Tensor& images) {
  const int last = images.rank() - 1;
  if (last >= 0 && images.dim(last) == 3) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'images' must have 3 channels last, but has shape ",
                   images.shape().ToString()));
}

// Every pixel of `in` through `function`.
template <typename T, typename Function>
void MapColors(const Tensor& in, ThreadPool* pool, Function function,
               Tensor* out) {
  const T* from = in.data<T>();
  T* to = out->data<T>();
  pool->ParallelFor(
      in.num_elements() / 3, 4096, [&](int64_t begin, int64_t end) {
        for (int64_t i = 3 * begin; i < 3 * end; i += 3) {
          const Color<T> color =
              function(Color<T>{from[i], from[i + 1], from[i + 2]});
          to[i] = color.a;
          to[i + 1] = color.b;
          to[i + 2] = color.c;
        }
      });
}

template <bool kToHsv>
absl::StatusOr<std::unique_ptr<Kernel>> MakeConvert(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& images = context->input(0);
    OPTFARM_RETURN_IF_ERROR(RequireColors(images));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out,
        context->AllocateOutput(0, images.dtype(), images.shape()));
    return VisitFloat(images.dtype(), "images", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      MapColors<T>(
          images, context->pool(),
          [](const Color<T>& c) { return kToHsv ? ToHsv(c) : ToRgb(c); }, out);
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<float> ReadFloat(const Tensor& tensor, absl::string_view name) {
  OPTFARM_RETURN_IF_ERROR(RequireOneElement(tensor, name));
  OPTFARM_RETURN_IF_ERROR(RequireDtype(tensor, name, tensorflow::DT_FLOAT));
  return *tensor.data<float>();
}

// `delta` turns the hue by this part of a full circle.
struct Hue {
  static constexpr const char* kInput = "delta";
  static Color<float> Of(const Color<float>& hsv, float delta) {
    const float turned = hsv.a + delta;
    return {turned - std::floor(turned), hsv.b, hsv.c};
  }
};
struct Saturation {
  static constexpr const char* kInput = "scale";
  static Color<float> Of(const Color<float>& hsv, float scale) {
    return {hsv.a, std::min(1.0f, std::max(0.0f, hsv.b * scale)), hsv.c};
  }
};

template <typename Change>
absl::StatusOr<std::unique_ptr<Kernel>> MakeAdjust(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", {tensorflow::DT_FLOAT}));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& images = context->input(0);
    OPTFARM_RETURN_IF_ERROR(
        RequireDtype(images, "images", tensorflow::DT_FLOAT));
    OPTFARM_RETURN_IF_ERROR(RequireColors(images));
    OPTFARM_ASSIGN_OR_RETURN(const float by,
                             ReadFloat(context->input(1), Change::kInput));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out,
        context->AllocateOutput(0, images.dtype(), images.shape()));
    MapColors<float>(
        images, context->pool(),
        [by](const Color<float>& rgb) {
          return ToRgb(Change::Of(ToHsv(rgb), by));
        },
        out);
    return absl::OkStatus();
  });
}

// Each channel of each image moves away from its mean.
absl::StatusOr<std::unique_ptr<Kernel>> MakeContrast(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", {tensorflow::DT_FLOAT}));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& images = context->input(0);
    OPTFARM_RETURN_IF_ERROR(
        RequireDtype(images, "images", tensorflow::DT_FLOAT));
    const int rank = images.rank();
    if (rank < 3) {
      return absl::InvalidArgumentError(
          absl::StrCat("'images' must have rank 3 or more, but has shape ",
                       images.shape().ToString()));
    }
    OPTFARM_ASSIGN_OR_RETURN(const float factor,
                             ReadFloat(context->input(1), "contrast_factor"));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out,
        context->AllocateOutput(0, images.dtype(), images.shape()));
    const int64_t channels = images.dim(rank - 1);
    const int64_t pixels = images.dim(rank - 2) * images.dim(rank - 3);
    const int64_t count = DimProduct(images.shape(), 0, rank - 3);
    if (pixels == 0) return absl::OkStatus();
    for (int64_t n = 0; n < count * channels; ++n) {
      const int64_t first = n / channels * pixels * channels + n % channels;
      const float* in = images.data<float>() + first;
      double sum = 0.0;
      for (int64_t i = 0; i < pixels; ++i) sum += double{in[i * channels]};
      const float mean = static_cast<float>(sum / static_cast<double>(pixels));
      float* to = out->data<float>() + first;
      for (int64_t i = 0; i < pixels; ++i) {
        to[i * channels] = (in[i * channels] - mean) * factor + mean;
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace

void AddColorKernels(KernelCatalog* catalog) {
  catalog->Add("RGBToHSV", MakeConvert<true>);
  catalog->Add("HSVToRGB", MakeConvert<false>);
  catalog->Add("AdjustContrastv2", MakeContrast);
  catalog->Add("AdjustHue", MakeAdjust<Hue>);
  catalog->Add("AdjustSaturation", MakeAdjust<Saturation>);
}

}  // namespace optfarm::runtime
