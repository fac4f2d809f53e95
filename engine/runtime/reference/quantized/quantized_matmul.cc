// QuantizedConv2D and QuantizedMatMul: products of quantized values with 32-bit
// results.

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/quantization.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/core/scratch.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/nn/window.h"
#include "engine/runtime/reference/quantized/quantized_families.h"
#include "engine/runtime/reference/quantized/quantized_gemm.h"
#include "engine/runtime/reference/quantized/quantized_inputs.h"

namespace optfarm::runtime {
namespace {

using tensorflow::NodeDef;

// Bytes of gathered patches that stay in a core's cache while they are read.
constexpr int64_t kPatchBytes = 128 * 1024;
// Multiplications that are worth another thread.
constexpr int64_t kWorkPerRange = 1 << 18;

absl::Status RequireIntSizes(std::initializer_list<int64_t> sizes) {
  for (int64_t size : sizes) {
    if (size > std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat("a matrix side of ", size, " is too large"));
    }
  }
  return absl::OkStatus();
}

// --- QuantizedConv2D ---------------------------------------------------------

struct Convolution {
  Window window;
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  const uint8_t* input = nullptr;
  QuantizedMatrix filter;
  int32_t input_zero = 0;

  int64_t patch_size() const {
    return window.y.size * window.x.size * in_channels;
  }
  // A 1x1 window with stride 1 reads the image as it lies.
  bool reads_in_place() const {
    return window.y.size == 1 && window.x.size == 1 && window.y.stride == 1 &&
           window.x.stride == 1 && window.y.out == window.y.in &&
           window.x.out == window.x.in;
  }
  void GatherPatch(int64_t pixel, uint8_t* patch) const;
  void Run(int64_t begin, int64_t end, int32_t* out) const;
};

// Copies what the window covers at output pixel `pixel` (counted over batch,
// height and width); outside the image stands the zero point.
void Convolution::GatherPatch(int64_t pixel, uint8_t* patch) const {
  const WindowAxis &y = window.y, &x = window.x;
  const int64_t batch = pixel / (y.out * x.out);
  const int64_t out_y = pixel / x.out % y.out;
  const int64_t out_x = pixel % x.out;
  const auto zero = static_cast<uint8_t>(std::clamp(input_zero, 0, 255));
  for (int64_t fy = 0; fy < y.size; ++fy) {
    const int64_t in_y = out_y * y.stride - y.pad_before + fy * y.dilation;
    for (int64_t fx = 0; fx < x.size; ++fx) {
      const int64_t in_x = out_x * x.stride - x.pad_before + fx * x.dilation;
      if (in_y < 0 || in_y >= y.in || in_x < 0 || in_x >= x.in) {
        std::memset(patch, zero, static_cast<size_t>(in_channels));
      } else {
        std::memcpy(patch,
                    input + ((batch * y.in + in_y) * x.in + in_x) * in_channels,
                    static_cast<size_t>(in_channels));
      }
      patch += in_channels;
    }
  }
}

// Computes output pixels [begin, end).
void Convolution::Run(int64_t begin, int64_t end, int32_t* out) const {
  const int64_t depth = patch_size();
  if (reads_in_place()) {
    QuantizedGemm({input + begin * depth, false, input_zero}, filter,
                  end - begin, depth, out_channels, out + begin * out_channels);
    return;
  }
  const int64_t rows = std::clamp<int64_t>(kPatchBytes / depth, 4, 1024);
  const Scratch<uint8_t> patches(std::min(rows, end - begin) * depth);
  for (int64_t row = begin; row < end; row += rows) {
    LeaveIfRunEnded();
    const int64_t count = std::min(rows, end - row);
    for (int64_t i = 0; i < count; ++i) {
      GatherPatch(row + i, patches.data() + i * depth);
    }
    QuantizedGemm({patches.data(), false, input_zero}, filter, count, depth,
                  out_channels, out + row * out_channels);
  }
}

absl::Status CheckConv(const KernelContext& c) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(c, 6));
  const Tensor &input = c.input(0), &filter = c.input(1);
  OPTFARM_RETURN_IF_ERROR(RequireInputDtype(c, 0, tensorflow::DT_QUINT8));
  OPTFARM_RETURN_IF_ERROR(RequireInputDtype(c, 1, tensorflow::DT_QUINT8));
  OPTFARM_RETURN_IF_ERROR(RequireRank(input, "input", 4));
  OPTFARM_RETURN_IF_ERROR(RequireRank(filter, "filter", 4));
  if (filter.dim(2) != input.dim(3)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the filter ", filter.shape().ToString(), " takes ",
                     filter.dim(2), " channels, the input ",
                     input.shape().ToString(), " has ", input.dim(3)));
  }
  return absl::OkStatus();
}

absl::Status ComputeConv(KernelContext* c, const WindowAttrs& attrs) {
  OPTFARM_RETURN_IF_ERROR(CheckConv(*c));
  const Tensor &input = c->input(0), &filter = c->input(1);
  OPTFARM_ASSIGN_OR_RETURN(const Range input_range, InputRange(*c, 2));
  OPTFARM_ASSIGN_OR_RETURN(const Range filter_range, InputRange(*c, 4));
  Convolution conv;
  OPTFARM_ASSIGN_OR_RETURN(
      conv.window, PlaceWindow(attrs, input.dim(1), input.dim(2), filter.dim(0),
                               filter.dim(1)));
  conv.in_channels = filter.dim(2);
  conv.out_channels = filter.dim(3);
  conv.input = input.data<uint8_t>();
  OPTFARM_ASSIGN_OR_RETURN(
      conv.input_zero, ZeroPointOf(input_range, MostZero(conv.patch_size())));
  OPTFARM_ASSIGN_OR_RETURN(const int32_t filter_zero,
                           ZeroPointOf(filter_range));
  conv.filter = {filter.data<uint8_t>(), false, filter_zero};
  OPTFARM_ASSIGN_OR_RETURN(
      const Shape shape,
      Shape::FromDims({input.dim(0), conv.window.y.out, conv.window.x.out,
                       conv.out_channels}));
  OPTFARM_RETURN_IF_ERROR(RequireIntSizes(
      {conv.patch_size(), conv.out_channels, shape.num_elements()}));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           c->AllocateOutput(0, tensorflow::DT_QINT32, shape));
  SetOutputRange(c, 1,
                 RangeOfProduct<uint8_t, uint8_t>(input_range, filter_range));
  if (shape.num_elements() == 0) return absl::OkStatus();
  if (conv.patch_size() == 0) {
    std::fill_n(out->data<int32_t>(), shape.num_elements(), 0);
    return absl::OkStatus();
  }
  const int64_t pixels = shape.num_elements() / conv.out_channels;
  const int64_t grain =
      kWorkPerRange /
      std::max<int64_t>(conv.patch_size() * conv.out_channels, 1);
  c->pool()->ParallelFor(pixels, std::max<int64_t>(grain, 4),
                         [&](int64_t begin, int64_t end) {
                           conv.Run(begin, end, out->data<int32_t>());
                         });
  return absl::OkStatus();
}

absl::Status RequireProductTypes(const NodeDef& node, const char* a,
                                 const char* b, const char* out) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, a, {tensorflow::DT_QUINT8}));
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, b, {tensorflow::DT_QUINT8}));
  return RequireTypeAttr(node, out, {tensorflow::DT_QINT32});
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeConv(const NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(
      RequireProductTypes(node, "Tinput", "Tfilter", "out_type"));
  OPTFARM_ASSIGN_OR_RETURN(const WindowAttrs attrs, ReadWindowAttrs(node));
  return MakeKernel(
      [attrs](KernelContext* c) { return ComputeConv(c, attrs); });
}

// --- QuantizedMatMul ---------------------------------------------------------

absl::Status ComputeMatMul(KernelContext* c, bool transpose_a,
                           bool transpose_b) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*c, 6));
  const Tensor &a = c->input(0), &b = c->input(1);
  OPTFARM_RETURN_IF_ERROR(RequireInputDtype(*c, 0, tensorflow::DT_QUINT8));
  OPTFARM_RETURN_IF_ERROR(RequireInputDtype(*c, 1, tensorflow::DT_QUINT8));
  OPTFARM_RETURN_IF_ERROR(RequireRank(a, "a", 2));
  OPTFARM_RETURN_IF_ERROR(RequireRank(b, "b", 2));
  OPTFARM_ASSIGN_OR_RETURN(const Range range_a, InputRange(*c, 2));
  OPTFARM_ASSIGN_OR_RETURN(const Range range_b, InputRange(*c, 4));
  const int64_t rows = a.dim(transpose_a ? 1 : 0);
  const int64_t depth = a.dim(transpose_a ? 0 : 1);
  const int64_t columns = b.dim(transpose_b ? 0 : 1);
  if (b.dim(transpose_b ? 1 : 0) != depth) {
    return absl::InvalidArgumentError(
        absl::StrCat("matrices of shape ", a.shape().ToString(), " and ",
                     b.shape().ToString(), " cannot be multiplied"));
  }
  OPTFARM_RETURN_IF_ERROR(RequireIntSizes({rows, depth, columns}));
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims({rows, columns}));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           c->AllocateOutput(0, tensorflow::DT_QINT32, shape));
  OPTFARM_ASSIGN_OR_RETURN(const int32_t zero_a,
                           ZeroPointOf(range_a, MostZero(depth)));
  OPTFARM_ASSIGN_OR_RETURN(const int32_t zero_b, ZeroPointOf(range_b));
  SetOutputRange(c, 1, RangeOfProduct<uint8_t, uint8_t>(range_a, range_b));
  int32_t* result = out->data<int32_t>();
  if (depth == 0) std::fill_n(result, shape.num_elements(), 0);
  if (depth == 0 || shape.num_elements() == 0) return absl::OkStatus();
  const QuantizedMatrix left = {a.data<uint8_t>(), transpose_a, zero_a};
  const QuantizedMatrix right = {b.data<uint8_t>(), transpose_b, zero_b};
  if (transpose_a) {
    // Rows of a transposed matrix do not lie together.
    QuantizedGemm(left, right, rows, depth, columns, result);
    return absl::OkStatus();
  }
  const int64_t grain = std::max<int64_t>(kWorkPerRange / (depth * columns), 1);
  c->pool()->ParallelFor(rows, grain, [&](int64_t begin, int64_t end) {
    QuantizedGemm({left.values + begin * depth, false, zero_a}, right,
                  end - begin, depth, columns, result + begin * columns);
  });
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeMatMul(const NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireProductTypes(node, "T1", "T2", "Toutput"));
  OPTFARM_ASSIGN_OR_RETURN(const bool transpose_a,
                           graph::GetBoolOr(node, "transpose_a", false));
  OPTFARM_ASSIGN_OR_RETURN(const bool transpose_b,
                           graph::GetBoolOr(node, "transpose_b", false));
  return MakeKernel([=](KernelContext* c) {
    return ComputeMatMul(c, transpose_a, transpose_b);
  });
}

}  // namespace

void AddQuantizedMatMulKernels(KernelCatalog* catalog) {
  catalog->Add("QuantizedConv2D", MakeConv);
  catalog->Add("QuantizedMatMul", MakeMatMul);
}

}  // namespace optfarm::runtime
