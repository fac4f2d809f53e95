// Normalization by what one example holds: LayerNorm, RmsNorm, GroupNorm,
// InstanceNorm. Means and variances are summed in double.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/spatial_attrs.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/broadcast.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

constexpr int64_t kGrain = 16 * 1024;
// Running sums of a row: they vectorize, and lose less than one.
constexpr int kLanes = 8;

struct Moments {
  double mean = 0.0;
  double inverse_deviation = 1.0;
};

// The sum of f(x) over a row: short runs in T, then in double.
template <typename T, typename Function>
double SumOf(const T* x, int64_t count, Function f) {
  constexpr int64_t kRun = 1024;
  double total = 0.0;
  for (int64_t begin = 0; begin < count; begin += kRun) {
    const int64_t end = std::min(count, begin + kRun);
    T lanes[kLanes] = {};
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (int k = 0; k < kLanes; ++k) lanes[k] += f(x[i + k]);
    }
    for (; i < end; ++i) lanes[0] += f(x[i]);
    for (const T lane : lanes) total += static_cast<double>(lane);
  }
  return total;
}

template <typename T>
Moments MomentsOf(const T* x, int64_t count, double epsilon) {
  Moments moments;
  const double n = static_cast<double>(count);
  moments.mean = SumOf(x, count, [](T v) { return v; }) / n;
  const T mean = static_cast<T>(moments.mean);
  const double squares = SumOf(x, count, [mean](T v) {
    const T d = v - mean;
    return d * d;
  });
  moments.inverse_deviation = 1.0 / std::sqrt(squares / n + epsilon);
  return moments;
}

// `part` as large as one row of shape `row`; itself when it is already.
absl::StatusOr<Tensor> AsRow(const Tensor& part, absl::string_view name,
                             const Shape& row) {
  if (part.num_elements() == row.num_elements()) return part;
  OPTFARM_ASSIGN_OR_RETURN(const BroadcastPlan plan,
                           PlanBroadcast(row, part.shape()));
  if (plan.output.num_elements() != row.num_elements()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", name, "' of shape ", part.shape().ToString(),
        " does not broadcast to the normalized shape ", row.ToString()));
  }
  OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(part.dtype(), row));
  OPTFARM_RETURN_IF_ERROR(
      VisitBySize(part.dtype(), name, [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        plan.ForEachElement([&](int64_t, int64_t from, int64_t at) {
          out.data<T>()[at] = part.data<T>()[from];
        });
        return absl::OkStatus();
      }));
  return out;
}

// The leading dimensions, with 1 for each normalized one.
absl::StatusOr<Shape> StatisticsShape(const Shape& shape, int axis) {
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  std::fill(dims.begin() + axis, dims.end(), int64_t{1});
  return Shape::FromDims(dims);
}

absl::StatusOr<Shape> RowShape(const Shape& shape, int axis) {
  return Shape::FromDims(shape.dims().subspan(axis));
}

struct LayerAttributes {
  int64_t axis = -1;
  float epsilon = 1e-5f;
};

absl::StatusOr<LayerAttributes> ReadLayerAttributes(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  LayerAttributes attributes;
  OPTFARM_ASSIGN_OR_RETURN(attributes.axis, graph::GetIntOr(node, "axis", -1));
  OPTFARM_ASSIGN_OR_RETURN(attributes.epsilon,
                           graph::GetFloatOr(node, "epsilon", 1e-5f));
  return attributes;
}

template <typename T>
void NormalizeRow(const T* x, int64_t count, const Moments& moments,
                  const T* scale, const T* bias, T* y) {
  const T mean = static_cast<T>(moments.mean);
  const T inverse = static_cast<T>(moments.inverse_deviation);
  for (int64_t i = 0; i < count; ++i) {
    y[i] = (x[i] - mean) * inverse * scale[i] + bias[i];
  }
}

absl::Status ComputeLayerNorm(const LayerAttributes& attributes,
                              KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
  const Tensor x = context->input(0);
  OPTFARM_RETURN_IF_ERROR(RequireSameDtype(x, context->input(1)));
  OPTFARM_RETURN_IF_ERROR(RequireSameDtype(x, context->input(2)));
  OPTFARM_ASSIGN_OR_RETURN(const int axis,
                           NormalizeAxis(attributes.axis, x.rank()));
  OPTFARM_ASSIGN_OR_RETURN(const Shape row, RowShape(x.shape(), axis));
  OPTFARM_ASSIGN_OR_RETURN(const Tensor scale,
                           AsRow(context->input(1), "scale", row));
  OPTFARM_ASSIGN_OR_RETURN(const Tensor bias,
                           AsRow(context->input(2), "bias", row));
  OPTFARM_ASSIGN_OR_RETURN(const Shape statistics,
                           StatisticsShape(x.shape(), axis));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * y,
                           context->AllocateOutput(0, x.dtype(), x.shape()));
  std::vector<Tensor> moments(2);
  for (Tensor& part : moments) {
    OPTFARM_ASSIGN_OR_RETURN(
        part, Tensor::Allocate(tensorflow::DT_FLOAT, statistics));
  }
  const int64_t size = row.num_elements();
  const int64_t rows = statistics.num_elements();
  if (size > 0) {
    OPTFARM_RETURN_IF_ERROR(
        VisitFloat(x.dtype(), "x", [&](auto tag) -> absl::Status {
          using T = typename decltype(tag)::type;
          context->pool()->ParallelFor(
              rows, 1 + kGrain / size, [&](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) {
                  const T* from = x.data<T>() + r * size;
                  const Moments m = MomentsOf(from, size, attributes.epsilon);
                  NormalizeRow(from, size, m, scale.data<T>(), bias.data<T>(),
                               y->data<T>() + r * size);
                  moments[0].data<float>()[r] = static_cast<float>(m.mean);
                  moments[1].data<float>()[r] =
                      static_cast<float>(m.inverse_deviation);
                }
              });
          return absl::OkStatus();
        }));
  }
  for (int i = 1; i < std::min(context->num_outputs(), 3); ++i) {
    context->SetOutput(i, std::move(moments[i - 1]));
  }
  return absl::OkStatus();
}

absl::Status ComputeRmsNorm(const LayerAttributes& attributes,
                            KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
  const Tensor& x = context->input(0);
  OPTFARM_RETURN_IF_ERROR(RequireSameDtype(x, context->input(1)));
  OPTFARM_ASSIGN_OR_RETURN(const int axis,
                           NormalizeAxis(attributes.axis, x.rank()));
  OPTFARM_ASSIGN_OR_RETURN(const Shape row, RowShape(x.shape(), axis));
  OPTFARM_ASSIGN_OR_RETURN(const Tensor scale,
                           AsRow(context->input(1), "scale", row));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * y,
                           context->AllocateOutput(0, x.dtype(), x.shape()));
  const int64_t size = row.num_elements();
  if (x.num_elements() == 0) return absl::OkStatus();
  return VisitFloat(x.dtype(), "x", [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    context->pool()->ParallelFor(
        x.num_elements() / size, 1 + kGrain / size,
        [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            const T* from = x.data<T>() + r * size;
            T* to = y->data<T>() + r * size;
            const double squares = SumOf(from, size, [](T v) { return v * v; });
            const T factor = static_cast<T>(
                1.0 / std::sqrt(squares / static_cast<double>(size) +
                                static_cast<double>(attributes.epsilon)));
            const T* by = scale.data<T>();
            for (int64_t i = 0; i < size; ++i) to[i] = from[i] * factor * by[i];
          }
        });
    return absl::OkStatus();
  });
}

// An image seen as [batch, before, channels, inner]: channels-first has one
// `before`, channels-last one `inner`.
struct ChannelView {
  int64_t batch = 1;
  int64_t before = 1;
  int64_t channels = 1;
  int64_t inner = 1;
};

absl::StatusOr<ChannelView> ViewChannels(const Shape& shape, bool is_nchw) {
  if (shape.rank() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("'x' must have a batch and channels, but has shape ",
                     shape.ToString()));
  }
  const int axis = is_nchw ? 1 : shape.rank() - 1;
  return ChannelView{shape.dim(0), DimProduct(shape, 1, axis), shape.dim(axis),
                     DimProduct(shape, axis + 1, shape.rank())};
}

// The sum of f(x, channel) of each channel of one image.
template <typename T, typename Function>
std::vector<double> ChannelSums(const T* image, const ChannelView& view,
                                Function f) {
  std::vector<double> sums(view.channels, 0.0);
  if (view.inner > 1) {
    for (int64_t b = 0; b < view.before; ++b) {
      for (int64_t c = 0; c < view.channels; ++c) {
        const T* from = image + (b * view.channels + c) * view.inner;
        sums[c] += SumOf(from, view.inner, [&](T v) { return f(v, c); });
      }
    }
    return sums;
  }
  // Channels lie side by side: short runs of pixels in T, then in double.
  constexpr int64_t kRun = 256;
  std::vector<T> run(view.channels);
  for (int64_t first = 0; first < view.before; first += kRun) {
    std::fill(run.begin(), run.end(), T(0));
    const int64_t end = std::min(view.before, first + kRun);
    for (int64_t b = first; b < end; ++b) {
      const T* from = image + b * view.channels;
      for (int64_t c = 0; c < view.channels; ++c) run[c] += f(from[c], c);
    }
    for (int64_t c = 0; c < view.channels; ++c) {
      sums[c] += static_cast<double>(run[c]);
    }
  }
  return sums;
}

// Each channel gets the mean of its group.
void AverageGroups(int64_t per_group, double count, std::vector<double>* sums) {
  for (size_t g = 0; g < sums->size(); g += per_group) {
    double sum = 0.0;
    for (int64_t c = 0; c < per_group; ++c) sum += (*sums)[g + c];
    std::fill_n(sums->begin() + g, per_group, sum / count);
  }
}

// y = x * factor[c] + offset[c] over one image.
template <typename T>
void ScaleChannels(const T* x, const ChannelView& view,
                   const std::vector<T>& factor, const std::vector<T>& offset,
                   T* y) {
  for (int64_t b = 0; b < view.before; ++b) {
    if (view.inner == 1) {
      const T* from = x + b * view.channels;
      T* to = y + b * view.channels;
      for (int64_t c = 0; c < view.channels; ++c) {
        to[c] = from[c] * factor[c] + offset[c];
      }
      continue;
    }
    for (int64_t c = 0; c < view.channels; ++c) {
      const int64_t at = (b * view.channels + c) * view.inner;
      for (int64_t i = at; i < at + view.inner; ++i) {
        y[i] = x[i] * factor[c] + offset[c];
      }
    }
  }
}

struct GroupAttributes {
  // 0: each channel is a group.
  int64_t groups = 0;
  float epsilon = 1e-5f;
  bool is_nchw = false;
};

template <typename T>
void NormalizeImage(const T* x, const ChannelView& view, int64_t groups,
                    double epsilon, const Tensor& scale, const Tensor& bias,
                    T* y) {
  const int64_t per_group = view.channels / groups;
  const int64_t per_scale = view.channels / scale.dim(0);
  const double count =
      static_cast<double>(per_group * view.before * view.inner);
  std::vector<double> means =
      ChannelSums(x, view, [](T v, int64_t) { return v; });
  AverageGroups(per_group, count, &means);
  const std::vector<T> centers(means.begin(), means.end());
  std::vector<double> variances = ChannelSums(x, view, [&](T v, int64_t c) {
    const T d = v - centers[c];
    return d * d;
  });
  AverageGroups(per_group, count, &variances);
  std::vector<T> factor(view.channels);
  std::vector<T> offset(view.channels);
  for (int64_t c = 0; c < view.channels; ++c) {
    const double by = static_cast<double>(scale.data<T>()[c / per_scale]) /
                      std::sqrt(variances[c] + epsilon);
    factor[c] = static_cast<T>(by);
    offset[c] = static_cast<T>(
        static_cast<double>(bias.data<T>()[c / per_scale]) - means[c] * by);
  }
  ScaleChannels(x, view, factor, offset, y);
}

// Scale and bias hold a value for each channel or for each group.
absl::Status CheckGroups(const ChannelView& view, int64_t groups,
                         const Tensor& scale, const Tensor& bias) {
  OPTFARM_RETURN_IF_ERROR(RequireRank(scale, "scale", 1));
  OPTFARM_RETURN_IF_ERROR(RequireShape(bias, "bias", scale.shape()));
  if (groups < 1 || view.channels % groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        view.channels, " channels do not form ", groups, " equal groups"));
  }
  if (scale.dim(0) != view.channels && scale.dim(0) != groups) {
    return absl::InvalidArgumentError(
        absl::StrCat("'scale' must hold ", view.channels, " values or ", groups,
                     ", but holds ", scale.dim(0)));
  }
  return absl::OkStatus();
}

absl::Status ComputeGroupNorm(const GroupAttributes& attributes,
                              KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
  const Tensor& x = context->input(0);
  const Tensor& scale = context->input(1);
  const Tensor& bias = context->input(2);
  OPTFARM_RETURN_IF_ERROR(RequireSameDtype(x, scale));
  OPTFARM_RETURN_IF_ERROR(RequireSameDtype(x, bias));
  OPTFARM_ASSIGN_OR_RETURN(const ChannelView view,
                           ViewChannels(x.shape(), attributes.is_nchw));
  if (x.num_elements() == 0) {
    return context->AllocateOutput(0, x.dtype(), x.shape()).status();
  }
  const int64_t groups =
      attributes.groups == 0 ? view.channels : attributes.groups;
  OPTFARM_RETURN_IF_ERROR(CheckGroups(view, groups, scale, bias));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * y,
                           context->AllocateOutput(0, x.dtype(), x.shape()));
  return VisitFloat(x.dtype(), "x", [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const int64_t image = x.num_elements() / view.batch;
    context->pool()->ParallelFor(
        view.batch, 1, [&](int64_t begin, int64_t end) {
          for (int64_t n = begin; n < end; ++n) {
            NormalizeImage(x.data<T>() + n * image, view, groups,
                           attributes.epsilon, scale, bias,
                           y->data<T>() + n * image);
          }
        });
    return absl::OkStatus();
  });
}

template <absl::Status (*kCompute)(const LayerAttributes&, KernelContext*)>
absl::StatusOr<std::unique_ptr<Kernel>> MakeLayer(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const LayerAttributes attributes,
                           ReadLayerAttributes(node));
  return MakeKernel([attributes](KernelContext* context) {
    return kCompute(attributes, context);
  });
}

template <bool kByChannel>
absl::StatusOr<std::unique_ptr<Kernel>> MakeGroup(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  GroupAttributes attributes;
  if (!kByChannel) {
    OPTFARM_ASSIGN_OR_RETURN(attributes.groups, graph::GetInt(node, "groups"));
    if (attributes.groups < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("groups = ", attributes.groups, " must be at least 1"));
    }
  }
  OPTFARM_ASSIGN_OR_RETURN(attributes.epsilon,
                           graph::GetFloatOr(node, "epsilon", 1e-5f));
  OPTFARM_ASSIGN_OR_RETURN(attributes.is_nchw, graph::IsNchw(node));
  return MakeKernel([attributes](KernelContext* context) {
    return ComputeGroupNorm(attributes, context);
  });
}

}  // namespace

void AddLayerNormalizationKernels(KernelCatalog* catalog) {
  catalog->Add("GroupNorm", MakeGroup<false>);
  catalog->Add("InstanceNorm", MakeGroup<true>);
  catalog->Add("LayerNorm", MakeLayer<ComputeLayerNorm>);
  catalog->Add("RmsNorm", MakeLayer<ComputeRmsNorm>);
}

}  // namespace optfarm::runtime
