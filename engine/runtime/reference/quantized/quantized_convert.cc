// QuantizeV2, Dequantize, Requantize and RequantizationRange: between real
// numbers, 8-bit values and 32-bit values (equations in quantization.h).

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/quantization.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/quantized/quantized_arithmetic.h"
#include "engine/runtime/reference/quantized/quantized_families.h"
#include "engine/runtime/reference/quantized/quantized_inputs.h"

namespace optfarm::runtime {
namespace {

using tensorflow::NodeDef;

constexpr int64_t kGrain = 16384;

// Calls function(Q{}) with the integer type of a quantized dtype.
template <typename Function>
absl::Status ForQuantizedType(DataType dtype, Function function) {
  switch (dtype) {
    case tensorflow::DT_QUINT8:
      return function(uint8_t{});
    case tensorflow::DT_QINT8:
      return function(int8_t{});
    case tensorflow::DT_QUINT16:
      return function(uint16_t{});
    case tensorflow::DT_QINT16:
      return function(int16_t{});
    case tensorflow::DT_QINT32:
      return function(int32_t{});
    default:
      return absl::UnimplementedError(
          absl::StrCat("attribute T is ", graph::DataTypeName(dtype),
                       ", expected a quantized dtype such as quint8"));
  }
}

// --- QuantizeV2 --------------------------------------------------------------

// std::round in a form that becomes vector instructions: the largest float
// below one half is added away from zero, so that x.5 goes up and nothing below
// it does.
inline float Round(float x) {
  return std::trunc(x + std::copysign(0.49999997f, x));
}

// How TensorFlow's vector path quantizes: single precision throughout.
template <typename Q>
void QuantizeMinFirst(const Tensor& input, Range range, ThreadPool* pool,
                      Q* out) {
  const MinFirst<Q> min_first(range);
  const float per_unit = min_first.per_unit, start = min_first.start;
  const float* in = input.data<float>();
  pool->ParallelFor(input.num_elements(), kGrain, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      // max and min in this order turn NaN into the lowest quantized value.
      const float q = Round(in[i] * per_unit) - start;
      out[i] = static_cast<Q>(
          std::min(std::max(LowestQuantized<Q>(), q), HighestQuantized<Q>()));
    }
  });
}

template <typename Q>
void QuantizeMinCombined(const Tensor& input, Range range, Q* out) {
  constexpr bool kSigned = std::numeric_limits<Q>::is_signed;
  const double per_unit =
      (QuantizedCount<Q>() - 1.0) / (double{range.max} - range.min);
  const double half = kSigned ? QuantizedCount<Q>() / 2.0 : 0.0;
  const float* in = input.data<float>();
  for (int64_t i = 0; i < input.num_elements(); ++i) {
    const float clipped = std::min(std::max(range.min, in[i]), range.max);
    const double exact = (double{clipped} - range.min) * per_unit;
    const double q =
        kSigned ? std::round(exact - half) : std::trunc(exact + 0.5);
    out[i] = static_cast<Q>(std::clamp(q, double{LowestQuantized<Q>()},
                                       double{HighestQuantized<Q>()}));
  }
}

// Symmetric: one scale, no offset. Returns the range the quantized values stand
// for.
template <typename Q>
Range QuantizeScaled(const Tensor& input, Range range, bool half_to_even,
                     Q* out) {
  const float lowest = LowestQuantized<Q>(), highest = HighestQuantized<Q>();
  const float infinite = std::numeric_limits<float>::infinity();
  const float scale =
      std::min(lowest * range.min > 0 ? lowest / range.min : infinite,
               highest * range.max > 0 ? highest / range.max : infinite);
  const Range used = {lowest / scale, highest / scale};
  const float* in = input.data<float>();
  for (int64_t i = 0; i < input.num_elements(); ++i) {
    const float exact = std::min(std::max(lowest, in[i] * scale), highest);
    out[i] = static_cast<Q>(half_to_even ? std::nearbyint(exact)
                                         : std::round(exact));
  }
  return used;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeQuantize(const NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const QuantizeMode mode, QuantizeModeOf(node));
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype, graph::GetType(node, "T"));
  OPTFARM_ASSIGN_OR_RETURN(
      const std::string rounding,
      graph::GetStringOr(node, "round_mode", "HALF_AWAY_FROM_ZERO"));
  OPTFARM_RETURN_IF_ERROR(
      ForQuantizedType(dtype, [](auto) { return absl::OkStatus(); }));
  const bool half_to_even = rounding == "HALF_TO_EVEN";
  return MakeKernel([=](KernelContext* c) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*c, 3));
    OPTFARM_RETURN_IF_ERROR(RequireInputDtype(*c, 0, tensorflow::DT_FLOAT));
    OPTFARM_ASSIGN_OR_RETURN(Range range, InputRange(*c, 1));
    range = WidenedForQuantize(range);
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             c->AllocateOutput(0, dtype, c->input(0).shape()));
    OPTFARM_RETURN_IF_ERROR(ForQuantizedType(dtype, [&](auto type) {
      using Q = decltype(type);
      Q* quantized = out->data<Q>();
      if (mode == QuantizeMode::kMinFirst) {
        QuantizeMinFirst(c->input(0), range, c->pool(), quantized);
      } else if (mode == QuantizeMode::kMinCombined) {
        QuantizeMinCombined(c->input(0), range, quantized);
      } else {
        range = QuantizeScaled(c->input(0), range, half_to_even, quantized);
      }
      return absl::OkStatus();
    }));
    SetOutputRange(c, 1, range);
    return absl::OkStatus();
  });
}

// --- Dequantize --------------------------------------------------------------

// Quantized values with a range for each index along `axis`.
template <typename Q>
void DequantizeAlong(const Tensor& input, int axis, QuantizeMode mode,
                     const std::vector<Range>& ranges, ThreadPool* pool,
                     float* values) {
  std::vector<Affine> affine;
  for (const Range& range : ranges) {
    affine.push_back(AffineOf<Q>(mode, range));
  }
  const int64_t inner = DimProduct(input.shape(), axis + 1, input.rank());
  const auto slices = static_cast<int64_t>(ranges.size());
  const Q* quantized = input.data<Q>();
  if (input.num_elements() == 0) return;
  pool->ParallelFor(
      input.num_elements() / inner, std::max<int64_t>(kGrain / inner, 1),
      [&](int64_t begin, int64_t end) {
        for (int64_t slice = begin; slice < end; ++slice) {
          const Affine& a = affine[slice % slices];
          for (int64_t i = slice * inner; i < (slice + 1) * inner; ++i) {
            values[i] =
                std::fma(static_cast<float>(quantized[i]), a.scale, a.offset);
          }
        }
      });
}

absl::Status DequantizeByAxis(KernelContext* c, int64_t along,
                              QuantizeMode mode, DataType dtype) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*c, 3));
  OPTFARM_RETURN_IF_ERROR(RequireInputDtype(*c, 0, dtype));
  const Tensor& input = c->input(0);
  OPTFARM_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(along, input.rank()));
  const int64_t slices = input.dim(axis);
  OPTFARM_ASSIGN_OR_RETURN(std::vector<Range> ranges,
                           InputRanges(*c, 1, slices));
  if (ranges.size() == 1) ranges.resize(slices, ranges[0]);
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * out, c->AllocateOutput(0, tensorflow::DT_FLOAT, input.shape()));
  return ForQuantizedType(dtype, [&](auto type) {
    DequantizeAlong<decltype(type)>(input, axis, mode, ranges, c->pool(),
                                    out->data<float>());
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeDequantize(const NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const QuantizeMode mode, QuantizeModeOf(node));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis,
                           graph::GetIntOr(node, "axis", -1));
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype, graph::GetType(node, "T"));
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "dtype", {tensorflow::DT_FLOAT}));
  OPTFARM_RETURN_IF_ERROR(
      ForQuantizedType(dtype, [](auto) { return absl::OkStatus(); }));
  return MakeKernel([=](KernelContext* c) -> absl::Status {
    if (axis != -1) return DequantizeByAxis(c, axis, mode, dtype);
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*c, 3));
    OPTFARM_RETURN_IF_ERROR(RequireInputDtype(*c, 0, dtype));
    OPTFARM_ASSIGN_OR_RETURN(const Range range, InputRange(*c, 1));
    const Tensor& input = c->input(0);
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out,
        c->AllocateOutput(0, tensorflow::DT_FLOAT, input.shape()));
    float* values = out->data<float>();
    return ForQuantizedType(dtype, [&](auto type) {
      using Q = decltype(type);
      const Affine affine = AffineOf<Q>(mode, range);
      const Q* quantized = input.data<Q>();
      c->pool()->ParallelFor(
          input.num_elements(), kGrain, [&](int64_t b, int64_t e) {
            for (int64_t i = b; i < e; ++i) {
              // One rounding, as in TensorFlow's builds with FMA.
              values[i] = std::fma(static_cast<float>(quantized[i]),
                                   affine.scale, affine.offset);
            }
          });
      return absl::OkStatus();
    });
  });
}

// --- Requantize, RequantizationRange -----------------------------------------

absl::StatusOr<std::unique_ptr<Kernel>> MakeRequantize(const NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "Tinput", {tensorflow::DT_QINT32}));
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "out_type", {tensorflow::DT_QUINT8}));
  return MakeKernel([](KernelContext* c) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*c, 5));
    OPTFARM_RETURN_IF_ERROR(RequireInputDtype(*c, 0, tensorflow::DT_QINT32));
    OPTFARM_ASSIGN_OR_RETURN(const Range from, InputRange(*c, 1));
    OPTFARM_ASSIGN_OR_RETURN(const Range to, InputRange(*c, 3));
    if (to.min > 0.0f) {
      return absl::InvalidArgumentError(
          absl::StrCat("the requested min must be 0 or below, got ", to.min));
    }
    const Tensor& input = c->input(0);
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out,
        c->AllocateOutput(0, tensorflow::DT_QUINT8, input.shape()));
    const Requantizer requantize(from, to);
    const int32_t* in = input.data<int32_t>();
    uint8_t* quantized = out->data<uint8_t>();
    c->pool()->ParallelFor(input.num_elements(), kGrain,
                           [&](int64_t b, int64_t e) {
                             for (int64_t i = b; i < e; ++i) {
                               quantized[i] = requantize(in[i]);
                             }
                           });
    SetOutputRange(c, 1, to);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeRequantizationRange(
    const NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "Tinput", {tensorflow::DT_QINT32}));
  return MakeKernel([](KernelContext* c) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*c, 3));
    OPTFARM_RETURN_IF_ERROR(RequireInputDtype(*c, 0, tensorflow::DT_QINT32));
    OPTFARM_ASSIGN_OR_RETURN(const Range range, InputRange(*c, 1));
    const auto quantized = c->input(0).flat<int32_t>();
    if (quantized.empty()) {
      return absl::InvalidArgumentError(
          "the range of a tensor without elements is not defined");
    }
    const auto [low, high] =
        std::minmax_element(quantized.begin(), quantized.end());
    const Dequantizer<int32_t> dequantize(range);
    SetOutputRange(c, 0, {std::min(0.0f, dequantize(*low)), dequantize(*high)});
    return absl::OkStatus();
  });
}

}  // namespace

void AddQuantizedConvertKernels(KernelCatalog* catalog) {
  catalog->Add("QuantizeV2", MakeQuantize);
  catalog->Add("Dequantize", MakeDequantize);
  catalog->Add("Requantize", MakeRequantize);
  catalog->Add("RequantizationRange", MakeRequantizationRange);
}

}  // namespace optfarm::runtime
