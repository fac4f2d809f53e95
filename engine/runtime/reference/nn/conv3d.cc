// Conv3D and its transpose Conv3DBackpropInputV2: direct loops over the window.

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/nn/window3d.h"

namespace optfarm::runtime {
namespace {

// NDHWC sizes of one convolution.
struct Geometry {
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t filters = 0;
  Window3d window;

  int64_t in_places() const {
    return window.axes[0].in * window.axes[1].in * window.axes[2].in;
  }
  int64_t out_places() const {
    return window.axes[0].out * window.axes[1].out * window.axes[2].out;
  }
  std::array<int64_t, 3> OutPlace(int64_t i) const {
    const int64_t height = window.axes[1].out;
    const int64_t width = window.axes[2].out;
    return {i / width / height, i / width % height, i % width};
  }
  // Output places that are worth a thread.
  int64_t grain() const {
    return 1 + 64 * 1024 /
                   std::max<int64_t>(1, window.cells() * channels * filters);
  }
};

template <typename T>
void Convolve(const T* in, const T* filter, const Geometry& g, ThreadPool* pool,
              T* out) {
  const int64_t places = g.out_places();
  pool->ParallelFor(
      g.batch * places, g.grain(), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T* image = in + i / places * g.in_places() * g.channels;
          T* to = out + i * g.filters;
          std::fill_n(to, g.filters, T(0));
          ForEachCell(
              g.window, g.OutPlace(i % places), [&](int64_t cell, int64_t at) {
                const T* weights = filter + cell * g.channels * g.filters;
                for (int64_t c = 0; c < g.channels; ++c) {
                  const T x = image[at * g.channels + c];
                  for (int64_t f = 0; f < g.filters; ++f) {
                    to[f] += x * weights[c * g.filters + f];
                  }
                }
              });
        }
      });
}

// Each output place adds its gradient to what it was computed from.
template <typename T>
void Scatter(const T* gradient, const T* filter, const Geometry& g, T* in) {
  const int64_t places = g.out_places();
  for (int64_t i = 0; i < g.batch * places; ++i) {
    LeaveIfRunEnded();
    T* image = in + i / places * g.in_places() * g.channels;
    const T* from = gradient + i * g.filters;
    ForEachCell(g.window, g.OutPlace(i % places),
                [&](int64_t cell, int64_t at) {
                  const T* weights = filter + cell * g.channels * g.filters;
                  for (int64_t c = 0; c < g.channels; ++c) {
                    T sum = T(0);
                    for (int64_t f = 0; f < g.filters; ++f) {
                      sum += from[f] * weights[c * g.filters + f];
                    }
                    image[at * g.channels + c] += sum;
                  }
                });
  }
}

absl::Status RequireOperands(const Tensor& volume, absl::string_view name,
                             const Tensor& filter) {
  OPTFARM_RETURN_IF_ERROR(RequireSameDtype(volume, filter));
  OPTFARM_RETURN_IF_ERROR(RequireRank(volume, name, 5));
  return RequireRank(filter, "filter", 5);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeConv3D(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(const Window3dAttrs attrs, ReadWindow3dAttrs(node));
  return MakeKernel([attrs](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    Tensor in = context->input(0);
    const Tensor& filter = context->input(1);
    OPTFARM_RETURN_IF_ERROR(RequireOperands(in, "input", filter));
    if (attrs.is_ncdhw) {
      OPTFARM_ASSIGN_OR_RETURN(in, NcdhwToNdhwc(in, context->pool()));
    }
    if (filter.dim(3) != in.dim(4)) {
      return absl::InvalidArgumentError(
          absl::StrCat("input of ", in.dim(4), " channels does not fit filter ",
                       "of shape ", filter.shape().ToString()));
    }
    Geometry g{in.dim(0), in.dim(4), filter.dim(4), {}};
    OPTFARM_ASSIGN_OR_RETURN(
        g.window, PlaceWindow3d(attrs, in.shape().dims().subspan(1, 3),
                                filter.shape().dims().subspan(0, 3)));
    const int64_t dims[] = {g.batch, g.window.axes[0].out, g.window.axes[1].out,
                            g.window.axes[2].out, g.filters};
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(in.dtype(), shape));
    if (shape.num_elements() > 0) {
      OPTFARM_RETURN_IF_ERROR(
          VisitFloat(in.dtype(), "input", [&](auto tag) -> absl::Status {
            using T = typename decltype(tag)::type;
            Convolve(in.data<T>(), filter.data<T>(), g, context->pool(),
                     out.data<T>());
            return absl::OkStatus();
          }));
    }
    if (attrs.is_ncdhw) {
      OPTFARM_ASSIGN_OR_RETURN(out, NdhwcToNcdhw(out, context->pool()));
    }
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

// The input's shape as NDHWC.
absl::StatusOr<Shape> ReadInputShape(const Tensor& sizes, bool is_ncdhw) {
  OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> dims,
                           ReadIntegers(sizes, "input_sizes"));
  if (dims.size() != 5) {
    return absl::InvalidArgumentError(
        absl::StrCat("input_sizes must be 5 values, but are ", dims.size()));
  }
  if (is_ncdhw) std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
  return Shape::FromDims(dims);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeConv3DBackpropInput(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(const Window3dAttrs attrs, ReadWindow3dAttrs(node));
  return MakeKernel([attrs](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    const Tensor& filter = context->input(1);
    Tensor gradient = context->input(2);
    OPTFARM_RETURN_IF_ERROR(RequireOperands(gradient, "out_backprop", filter));
    if (attrs.is_ncdhw) {
      OPTFARM_ASSIGN_OR_RETURN(gradient,
                               NcdhwToNdhwc(gradient, context->pool()));
    }
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                             ReadInputShape(context->input(0), attrs.is_ncdhw));
    Geometry g{shape.dim(0), shape.dim(4), filter.dim(4), {}};
    OPTFARM_ASSIGN_OR_RETURN(
        g.window, PlaceWindow3d(attrs, shape.dims().subspan(1, 3),
                                filter.shape().dims().subspan(0, 3)));
    const int64_t dims[] = {g.batch, g.window.axes[0].out, g.window.axes[1].out,
                            g.window.axes[2].out, g.filters};
    OPTFARM_ASSIGN_OR_RETURN(const Shape expected, Shape::FromDims(dims));
    OPTFARM_RETURN_IF_ERROR(RequireShape(gradient, "out_backprop", expected));
    if (filter.dim(3) != g.channels) {
      return absl::InvalidArgumentError(
          absl::StrCat("filter of shape ", filter.shape().ToString(),
                       " does not make ", g.channels, " channels"));
    }
    OPTFARM_ASSIGN_OR_RETURN(Tensor out,
                             Tensor::Zeros(gradient.dtype(), shape));
    if (shape.num_elements() > 0 && gradient.num_elements() > 0) {
      OPTFARM_RETURN_IF_ERROR(VisitFloat(
          gradient.dtype(), "out_backprop", [&](auto tag) -> absl::Status {
            using T = typename decltype(tag)::type;
            Scatter(gradient.data<T>(), filter.data<T>(), g, out.data<T>());
            return absl::OkStatus();
          }));
    }
    if (attrs.is_ncdhw) {
      OPTFARM_ASSIGN_OR_RETURN(out, NdhwcToNcdhw(out, context->pool()));
    }
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

}  // namespace

void AddConvolution3dKernels(KernelCatalog* catalog) {
  catalog->Add("Conv3D", MakeConv3D);
  catalog->Add("Conv3DBackpropInputV2", MakeConv3DBackpropInput);
}

}  // namespace optfarm::runtime
