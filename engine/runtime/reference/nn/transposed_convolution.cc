// Conv2DTranspose: each input pixel adds its products with the filter to the
// window of the output that it stands under.

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/core/scratch.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/layer_families.h"
#include "engine/runtime/reference/linear_algebra/matrix_product.h"

namespace optfarm::runtime {
namespace {

// Larger attributes are damage; sums of their products stay in 63 bits.
constexpr int64_t kMost = int64_t{1} << 20;

// UNITS: elements of products that wait to be added: they stay in the level-2
// cache.
constexpr int64_t kMostCells = 32 * 1024;

struct TransposeAttrs {
  int64_t stride[2] = {1, 1};
  int64_t dilation[2] = {1, 1};
  int64_t before[2] = {0, 0};
  int64_t after[2] = {0, 0};
  int64_t more[2] = {0, 0};
  int64_t groups = 1;
};

// Sizes of one run, height and width.
struct TransposeSizes {
  int64_t batch = 0, channels = 0, outputs = 0;
  int64_t in[2] = {0, 0};
  int64_t window[2] = {0, 0};
  int64_t out[2] = {0, 0};
};

absl::StatusOr<std::vector<int64_t>> ReadList(const tensorflow::NodeDef& node,
                                              absl::string_view name,
                                              size_t count, int64_t absent,
                                              int64_t least) {
  OPTFARM_ASSIGN_OR_RETURN(
      std::vector<int64_t> values,
      graph::GetIntsOr(node, name, std::vector<int64_t>(count, absent)));
  const bool fits = values.size() == count &&
                    std::all_of(values.begin(), values.end(), [&](int64_t v) {
                      return v >= least && v <= kMost;
                    });
  if (fits) return values;
  return absl::InvalidArgumentError(
      absl::StrCat(name, " must be ", count, " values from ", least));
}

// Short, as most are, and known not to overlap.
template <typename T>
inline void AddCell(const T* cell, int64_t outputs, T* __restrict to) {
  if (outputs == 1) {
    *to += *cell;
    return;
  }
  for (int64_t o = 0; o < outputs; ++o) to[o] += cell[o];
}

// Rows of cells (kernel height x width x outputs of the group) of one input
// row, added to the output.
template <typename T>
void AddRow(const TransposeAttrs& a, const TransposeSizes& s, int64_t iy,
            const T* cells, int64_t group, T* out) {
  const int64_t outputs = s.outputs / a.groups;
  const int64_t width = s.window[0] * s.window[1] * outputs;
  for (int64_t ky = 0; ky < s.window[0]; ++ky) {
    const int64_t oy = iy * a.stride[0] - a.before[0] + ky * a.dilation[0];
    if (oy < 0 || oy >= s.out[0]) continue;
    T* row = out + oy * s.out[1] * s.outputs + group * outputs;
    for (int64_t ix = 0; ix < s.in[1]; ++ix) {
      const T* cell = cells + ix * width + ky * s.window[1] * outputs;
      int64_t ox = ix * a.stride[1] - a.before[1];
      for (int64_t kx = 0; kx < s.window[1]; ++kx, cell += outputs) {
        if (ox >= 0 && ox < s.out[1])
          AddCell(cell, outputs, row + ox * s.outputs);
        ox += a.dilation[1];
      }
    }
  }
}

// One group's part of pixels or filter rows, side by side.
template <typename T>
void CopyGroup(const T* from, int64_t rows, int64_t width, int64_t group,
               int64_t groups, T* to) {
  const int64_t part = width / groups;
  for (int64_t i = 0; i < rows; ++i) {
    std::copy_n(from + i * width + group * part, part, to + i * part);
  }
}

template <typename T>
void ConvolveTransposed(const TransposeAttrs& a, const TransposeSizes& s,
                        const T* image, const T* filter, ThreadPool* pool,
                        T* out) {
  const int64_t depth = s.channels / a.groups;
  const int64_t cell_rows = s.window[0] * s.window[1] * (s.outputs / a.groups);
  // Input rows that are multiplied together: products of few pixels take long.
  const int64_t rows = std::clamp<int64_t>(
      kMostCells / std::max<int64_t>(1, s.in[1] * cell_rows), 1, s.in[0]);
  const bool copies = a.groups > 1;
  const Scratch<T> weights(copies ? cell_rows * depth : 0);
  const Scratch<T> pixels(copies ? rows * s.in[1] * depth : 0);
  const Scratch<T> cells(rows * s.in[1] * cell_rows);
  for (int64_t group = 0; group < a.groups; ++group) {
    if (copies) {
      CopyGroup(filter, cell_rows, s.channels, group, a.groups, weights.data());
    }
    for (int64_t b = 0; b < s.batch; ++b) {
      T* to = out + b * s.out[0] * s.out[1] * s.outputs;
      for (int64_t iy = 0; iy < s.in[0]; iy += rows) {
        LeaveIfRunEnded();
        const int64_t some = std::min(rows, s.in[0] - iy);
        const T* from = image + (b * s.in[0] + iy) * s.in[1] * s.channels;
        if (copies) {
          CopyGroup(from, some * s.in[1], s.channels, group, a.groups,
                    pixels.data());
        }
        Multiply<T>(
            {copies ? pixels.data() : from, some * s.in[1], depth, false},
            {copies ? weights.data() : filter, depth, cell_rows, true}, pool,
            cells.data());
        for (int64_t i = 0; i < some; ++i) {
          AddRow(a, s, iy + i, cells.data() + i * s.in[1] * cell_rows, group,
                 to);
        }
      }
    }
  }
}

absl::StatusOr<TransposeSizes> Sizes(const TransposeAttrs& a,
                                     const Tensor& image,
                                     const Tensor& filter) {
  OPTFARM_RETURN_IF_ERROR(RequireRank(image, "input", 4));
  OPTFARM_RETURN_IF_ERROR(RequireRank(filter, "filter", 4));
  TransposeSizes s{image.dim(0), image.dim(3), filter.dim(2) * a.groups};
  if (filter.dim(3) != s.channels || s.channels % a.groups != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the input has ", s.channels, " channels in ", a.groups,
                     " groups, the filter takes ", filter.dim(3)));
  }
  for (int i = 0; i < 2; ++i) {
    s.in[i] = image.dim(i + 1);
    s.window[i] = filter.dim(i);
    if (s.in[i] < 1 || s.window[i] < 1 || s.in[i] > (int64_t{1} << 40) ||
        s.window[i] > (int64_t{1} << 40)) {
      return absl::InvalidArgumentError("the image or the filter is empty");
    }
    s.out[i] = (s.in[i] - 1) * a.stride[i] + a.more[i] +
               (s.window[i] - 1) * a.dilation[i] + 1 - a.before[i] - a.after[i];
    if (s.out[i] < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the output would have a size of ", s.out[i]));
    }
  }
  return s;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeConv2dTranspose(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  TransposeAttrs attrs;
  OPTFARM_ASSIGN_OR_RETURN(const auto strides,
                           ReadList(node, "strides", 4, 1, 1));
  OPTFARM_ASSIGN_OR_RETURN(const auto dilations,
                           ReadList(node, "dilations", 4, 1, 1));
  OPTFARM_ASSIGN_OR_RETURN(const auto pads,
                           ReadList(node, "explicit_paddings", 8, 0, 0));
  OPTFARM_ASSIGN_OR_RETURN(const auto more,
                           ReadList(node, "output_padding", 2, 0, 0));
  OPTFARM_ASSIGN_OR_RETURN(attrs.groups, graph::GetIntOr(node, "groups", 1));
  if (attrs.groups < 1 || attrs.groups > kMost) {
    return absl::InvalidArgumentError(absl::StrCat("groups is ", attrs.groups));
  }
  for (size_t i = 0; i < 2; ++i) {
    attrs.stride[i] = strides[i + 1];
    attrs.dilation[i] = dilations[i + 1];
    attrs.before[i] = pads[2 * i + 2];
    attrs.after[i] = pads[2 * i + 3];
    attrs.more[i] = more[i];
  }
  return MakeKernel([attrs](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& image = context->input(0);
    const Tensor& filter = context->input(1);
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(image, filter));
    OPTFARM_ASSIGN_OR_RETURN(const TransposeSizes s,
                             Sizes(attrs, image, filter));
    const int64_t dims[] = {s.batch, s.out[0], s.out[1], s.outputs};
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    return VisitFloat(image.dtype(), "input", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Zeros(image.dtype(), shape));
      if (shape.num_elements() > 0 && s.channels > 0) {
        ConvolveTransposed(attrs, s, image.data<T>(), filter.data<T>(),
                           context->pool(), out.data<T>());
      }
      context->SetOutput(0, std::move(out));
      return absl::OkStatus();
    });
  });
}

}  // namespace

void AddTransposedConvolutionKernels(KernelCatalog* catalog) {
  catalog->Add("Conv2DTranspose", MakeConv2dTranspose);
}

}  // namespace optfarm::runtime
