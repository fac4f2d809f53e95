// GridSample: an image read at positions that a grid names, over two or three
// spatial dimensions behind batch and channels. Positions run from -1 to 1.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
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

enum class Mode { kLinear, kNearest, kCubic };
enum class Padding { kZeros, kBorder, kReflection };

struct GridAttributes {
  Mode mode = Mode::kLinear;
  Padding padding = Padding::kZeros;
  bool align_corners = false;
};

constexpr int kMaxTaps = 4;
constexpr int kMaxSpatial = 3;

// What one position reads along one dimension. Index -1 reads zero.
struct Taps {
  int count = 0;
  std::array<int64_t, kMaxTaps> index = {};
  std::array<double, kMaxTaps> weight = {};
};

// `x` mirrored at the two ends until it lies between them.
double Reflected(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0.0) return low;
  const double away = x < low ? low - x : x - high;
  const double times = std::floor(away / range);
  const double rest = away - times * range;
  const bool is_even = std::fmod(times, 2.0) == 0.0;
  return (x < low) == is_even ? low + rest : high - rest;
}

// The pixel that stands for index `at`; -1 for none.
int64_t PixelIndex(const GridAttributes& grid, double at, int64_t size) {
  const double last = static_cast<double>(size - 1);
  if (at >= 0.0 && at <= last) return static_cast<int64_t>(at);
  if (grid.padding == Padding::kZeros) return -1;
  if (grid.padding == Padding::kReflection) {
    const double edge = grid.align_corners ? 0.0 : 0.5;
    at = Reflected(at, -edge, last + edge);
  }
  return static_cast<int64_t>(std::clamp(at, 0.0, last));
}

// Keys' cubic with a = -0.75.
double CubicWeight(double distance) {
  constexpr double a = -0.75;
  const double d = std::abs(distance);
  if (d <= 1.0) return ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0;
  if (d < 2.0) return ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a;
  return 0.0;
}

Taps TapsAt(const GridAttributes& grid, double position, int64_t size) {
  Taps taps;
  // No image has pixels there, and no index could name them.
  if (!(std::abs(position) < 1e9)) position = position < 0 ? -1e9 : 1e9;
  const double n = static_cast<double>(size);
  double x = grid.align_corners ? (position + 1.0) / 2.0 * (n - 1.0)
                                : ((position + 1.0) * n - 1.0) / 2.0;
  if (grid.mode == Mode::kNearest) x = std::nearbyint(x);
  const double edge = grid.align_corners ? 0.0 : 0.5;
  if (x < -edge || x > n - 1.0 + edge) {
    if (grid.padding == Padding::kBorder) x = std::clamp(x, 0.0, n - 1.0);
    if (grid.padding == Padding::kReflection) {
      x = Reflected(x, -edge, n - 1.0 + edge);
    }
  }
  const double base = std::floor(x);
  const auto add = [&](double at, double weight) {
    taps.index[taps.count] = PixelIndex(grid, at, size);
    taps.weight[taps.count++] = weight;
  };
  switch (grid.mode) {
    case Mode::kNearest:
      add(std::nearbyint(x), 1.0);
      break;
    case Mode::kLinear:
      add(base, 1.0 - (x - base));
      add(base + 1.0, x - base);
      break;
    case Mode::kCubic:
      for (int k = -1; k <= 2; ++k) add(base + k, CubicWeight(x - base - k));
      break;
  }
  return taps;
}

// One sample: the image's pixels under the product of the taps.
template <typename T>
double Sample(const T* image, const std::vector<Taps>& taps,
              const std::vector<int64_t>& strides, size_t dimension,
              int64_t at) {
  if (dimension == taps.size()) return static_cast<double>(image[at]);
  double sum = 0.0;
  const Taps& here = taps[dimension];
  for (int k = 0; k < here.count; ++k) {
    if (here.index[k] < 0 || here.weight[k] == 0.0) continue;
    sum += here.weight[k] * Sample(image, taps, strides, dimension + 1,
                                   at + here.index[k] * strides[dimension]);
  }
  return sum;
}

absl::Status CheckShapes(const Tensor& x, const Tensor& grid) {
  const int spatial = x.rank() - 2;
  if (spatial < 1 || spatial > kMaxSpatial || grid.rank() != x.rank() ||
      grid.dim(0) != x.dim(0) || grid.dim(grid.rank() - 1) != spatial) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'grid' of shape ", grid.shape().ToString(),
        " does not name positions in 'x' of shape ", x.shape().ToString()));
  }
  for (int i = 2; i < x.rank(); ++i) {
    if (x.dim(i) == 0 && grid.num_elements() > 0) {
      return absl::InvalidArgumentError("'x' has no pixels to sample");
    }
  }
  return absl::OkStatus();
}

template <typename T, typename G>
void SampleAll(const GridAttributes& attributes, const Tensor& x,
               const Tensor& grid, ThreadPool* pool, Tensor* out) {
  const int spatial = x.rank() - 2;
  std::vector<int64_t> strides(spatial, 1);
  for (int d = spatial - 2; d >= 0; --d) {
    strides[d] = strides[d + 1] * x.dim(d + 3);
  }
  const int64_t channels = x.dim(1);
  const int64_t pixels = DimProduct(x.shape(), 2, x.rank());
  const int64_t samples = DimProduct(out->shape(), 2, out->rank());
  pool->ParallelFor(x.dim(0) * samples, 256, [&](int64_t begin, int64_t end) {
    std::vector<Taps> taps(spatial);
    for (int64_t i = begin; i < end; ++i) {
      // The grid names the innermost dimension first.
      const G* position = grid.data<G>() + i * spatial;
      for (int d = 0; d < spatial; ++d) {
        taps[d] =
            TapsAt(attributes, static_cast<double>(position[spatial - 1 - d]),
                   x.dim(d + 2));
      }
      const int64_t n = i / samples;
      for (int64_t c = 0; c < channels; ++c) {
        const T* image = x.data<T>() + (n * channels + c) * pixels;
        out->data<T>()[(n * channels + c) * samples + i % samples] =
            static_cast<T>(Sample(image, taps, strides, 0, 0));
      }
    }
  });
}

absl::Status Compute(const GridAttributes& attributes, KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
  const Tensor& x = context->input(0);
  const Tensor& grid = context->input(1);
  OPTFARM_RETURN_IF_ERROR(CheckShapes(x, grid));
  std::vector<int64_t> dims = {x.dim(0), x.dim(1)};
  dims.insert(dims.end(), grid.shape().dims().begin() + 1,
              grid.shape().dims().end() - 1);
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(0, x.dtype(), shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  return VisitFloat(x.dtype(), "x", [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return VisitFloat(grid.dtype(), "grid", [&](auto grid_tag) -> absl::Status {
      using G = typename decltype(grid_tag)::type;
      SampleAll<T, G>(attributes, x, grid, context->pool(), out);
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<GridAttributes> ReadAttributes(const tensorflow::NodeDef& node) {
  GridAttributes attributes;
  OPTFARM_ASSIGN_OR_RETURN(const std::string mode,
                           graph::GetStringOr(node, "mode", "linear"));
  if (mode == "nearest") {
    attributes.mode = Mode::kNearest;
  } else if (mode == "cubic") {
    attributes.mode = Mode::kCubic;
  } else if (mode != "linear") {
    return absl::UnimplementedError(
        absl::StrCat("mode '", mode, "' is none of linear, nearest and cubic"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::string padding,
                           graph::GetStringOr(node, "padding_mode", "zeros"));
  if (padding == "border") {
    attributes.padding = Padding::kBorder;
  } else if (padding == "reflection") {
    attributes.padding = Padding::kReflection;
  } else if (padding != "zeros") {
    return absl::UnimplementedError(absl::StrCat(
        "padding_mode '", padding, "' is none of zeros, border, reflection"));
  }
  OPTFARM_ASSIGN_OR_RETURN(attributes.align_corners,
                           graph::GetBoolOr(node, "align_corners", false));
  return attributes;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeGridSample(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "Tgrid", OPTFARM_FLOAT_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(const GridAttributes attributes,
                           ReadAttributes(node));
  return MakeKernel([attributes](KernelContext* context) {
    return Compute(attributes, context);
  });
}

}  // namespace

void AddGridSampleKernels(KernelCatalog* catalog) {
  catalog->Add("GridSample", MakeGridSample);
}

}  // namespace optfarm::runtime
