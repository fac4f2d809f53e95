// QuantizedReshape, QuantizedConcat and QuantizedConcatV2: quantized values are
// moved, and requantized only where the joined tensors have different ranges.

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/runtime/core/quantization.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/quantized/quantized_families.h"
#include "engine/runtime/reference/quantized/quantized_inputs.h"

namespace optfarm::runtime {
namespace {

using tensorflow::NodeDef;

// --- QuantizedReshape --------------------------------------------------------

// The wanted dims with at most one -1 resolved.
absl::StatusOr<Shape> ResolveShape(const Tensor& input,
                                   std::vector<int64_t> dims) {
  int64_t known = 1;
  int unknown = -1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == -1 && unknown < 0) {
      unknown = static_cast<int>(i);
    } else if (dims[i] < 0 || __builtin_mul_overflow(known, dims[i], &known)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the new shape has a dimension of ", dims[i]));
    }
  }
  if (unknown >= 0 && known > 0) dims[unknown] = input.num_elements() / known;
  if (unknown >= 0 && known == 0) dims[unknown] = 0;
  OPTFARM_ASSIGN_OR_RETURN(Shape shape, Shape::FromDims(dims));
  if (shape.num_elements() != input.num_elements()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor of shape ", input.shape().ToString(),
                     " cannot take the shape ", shape.ToString()));
  }
  return shape;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeReshape(const NodeDef&) {
  return MakeKernel([](KernelContext* c) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*c, 4));
    OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> dims,
                             ReadIntegers(c->input(1), "shape"));
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                             ResolveShape(c->input(0), std::move(dims)));
    OPTFARM_ASSIGN_OR_RETURN(const Range range, InputRange(*c, 2));
    c->SetOutput(0, c->input(0).Reshaped(shape));
    SetOutputRange(c, 1, range);
    return absl::OkStatus();
  });
}

// --- QuantizedConcat ---------------------------------------------------------

// Quantized values that are worth another thread. Sharing leaves each thread's
// rows in its own cache for what reads them next.
constexpr int64_t kValuesPerRange = 16 * 1024;

// The quantized value in range `to` of each quantized value in range `from`.
class RangeConverter {
 public:
  RangeConverter(Range from, Range to)
      : is_identity_(from.min == to.min && from.max == to.max) {
    if (is_identity_) return;
    const Dequantizer<uint8_t> dequantize(from);
    for (int q = 0; q < 256; ++q) {
      table_[q] = Quantize<uint8_t>(dequantize(static_cast<uint8_t>(q)), to);
    }
  }
  void Copy(const uint8_t* in, int64_t count, uint8_t* out) const {
    if (is_identity_) {
      std::memcpy(out, in, static_cast<size_t>(count));
    } else {
      for (int64_t i = 0; i < count; ++i) out[i] = table_[in[i]];
    }
  }

 private:
  bool is_identity_;
  std::array<uint8_t, 256> table_;
};

// Inputs: axis, n tensors, their n mins, their n maxes; the axis comes after
// the tensors in QuantizedConcatV2, whose inputs are counted by `values`.
absl::Status Concat(KernelContext* c, int n, bool is_v2) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*c, 3 * n + 1));
  const int values = is_v2 ? 0 : 1;
  const Tensor& first = c->input(values);
  OPTFARM_ASSIGN_OR_RETURN(
      const int axis, ReadAxis(c->input(is_v2 ? n : 0),
                               is_v2 ? "axis" : "concat_dim", first.rank()));
  std::vector<Range> ranges(n);
  Range all = {0.0f, std::numeric_limits<float>::lowest()};
  int64_t joined = 0;
  for (int i = 0; i < n; ++i) {
    const Tensor& part = c->input(values + i);
    OPTFARM_RETURN_IF_ERROR(
        RequireInputDtype(*c, values + i, tensorflow::DT_QUINT8));
    OPTFARM_RETURN_IF_ERROR(RequireRank(part, "values", first.rank()));
    OPTFARM_ASSIGN_OR_RETURN(const Shape as_first,
                             WithDim(part.shape(), axis, first.dim(axis)));
    if (!(as_first == first.shape())) {
      return absl::InvalidArgumentError(
          absl::StrCat("shapes ", first.shape().ToString(), " and ",
                       part.shape().ToString(), " differ beyond axis ", axis));
    }
    OPTFARM_ASSIGN_OR_RETURN(ranges[i], InputRange(*c, 1 + n + i, n));
    all.min = std::min(all.min, ranges[i].min);
    all.max = std::max(all.max, ranges[i].max);
    joined += part.dim(axis);
  }
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                           WithDim(first.shape(), axis, joined));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           c->AllocateOutput(0, tensorflow::DT_QUINT8, shape));
  const int64_t outer = DimProduct(shape, 0, axis);
  const int64_t row = DimProduct(shape, axis, shape.rank());
  std::vector<RangeConverter> converters;
  for (const Range& range : ranges) converters.emplace_back(range, all);
  const int64_t grain = 1 + kValuesPerRange / std::max<int64_t>(row, 1);
  c->pool()->ParallelFor(outer, grain, [&](int64_t begin, int64_t end) {
    uint8_t* to = out->data<uint8_t>();
    for (int i = 0; i < n; ++i) {
      const Tensor& part = c->input(values + i);
      const int64_t size = DimProduct(part.shape(), axis, part.rank());
      for (int64_t o = begin; o < end; ++o) {
        converters[i].Copy(part.data<uint8_t>() + o * size, size, to + o * row);
      }
      to += size;
    }
  });
  SetOutputRange(c, 1, all);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeConcat(const NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", {tensorflow::DT_QUINT8}));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t n, graph::GetInt(node, "N"));
  if (n < 1 || n > 10000) {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute N is ", n, ", expected 1 to 10000"));
  }
  const bool is_v2 = !graph::RowOf(node.op()).has_axis_first;
  return MakeKernel([n, is_v2](KernelContext* c) {
    return Concat(c, static_cast<int>(n), is_v2);
  });
}

}  // namespace

void AddQuantizedShapeKernels(KernelCatalog* catalog) {
  catalog->Add("QuantizedReshape", MakeReshape);
  catalog->Add("QuantizedConcat", MakeConcat);
  catalog->Add("QuantizedConcatV2", MakeConcat);
}

}  // namespace optfarm::runtime
