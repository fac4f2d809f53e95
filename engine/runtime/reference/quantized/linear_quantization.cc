// QuantizeLinear and DequantizeLinear: quantized values with an explicit scale
// and zero point, for a tensor or for each index of an axis, as ONNX and
// TensorFlow Lite have them.
//
//   quantized = saturate(round(real / scale) + zero_point), half to even
//   real = (quantized - zero_point) * scale
//
// From one 8-bit scale to another, with m = round(256 * scale / new scale):
//
//   quantized = saturate(((m * (other - zero) + 128) >> 8) + new zero)

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/quantized/inner_loops.h"

namespace optfarm::runtime {
namespace {

// UNITS: elements; a thread's share is worth at least this many.
constexpr int64_t kGrain = 16384;

struct LinearAttributes {
  int64_t axis = -1;
  int64_t bits = 8;
};

absl::StatusOr<LinearAttributes> ReadAttributes(
    const tensorflow::NodeDef& node) {
  LinearAttributes attributes;
  OPTFARM_ASSIGN_OR_RETURN(attributes.axis, graph::GetIntOr(node, "axis", -1));
  OPTFARM_ASSIGN_OR_RETURN(attributes.bits, graph::GetIntOr(node, "bits", 8));
  if (attributes.bits < 2 || attributes.bits > 32) {
    return absl::InvalidArgumentError(
        absl::StrCat("'bits' must be from 2 to 32, not ", attributes.bits));
  }
  return attributes;
}

// Which scale an element has.
struct Channels {
  int64_t count = 1;
  // Elements of one channel that stand together.
  int64_t run = 1;
};

absl::StatusOr<Channels> FindChannels(const Tensor& x, const Tensor& scale,
                                      const Tensor& zero_point,
                                      const LinearAttributes& attributes) {
  OPTFARM_RETURN_IF_ERROR(RequireDtype(scale, "scale", tensorflow::DT_FLOAT));
  if (scale.rank() > 1 || zero_point.num_elements() != scale.num_elements()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'scale' ", scale.shape().ToString(), " and 'zero_point' ",
                     zero_point.shape().ToString(),
                     " must be scalars, or vectors of one size"));
  }
  Channels channels;
  if (scale.num_elements() == 1) {
    channels.run = x.num_elements();
    return channels;
  }
  OPTFARM_ASSIGN_OR_RETURN(const int axis,
                           NormalizeAxis(attributes.axis, x.rank()));
  channels.count = x.dim(axis);
  if (scale.num_elements() != channels.count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'scale' has ", scale.num_elements(), " elements, dimension ", axis,
        " of the tensor ", x.shape().ToString(), " has ", channels.count));
  }
  channels.run = DimProduct(x.shape(), axis + 1, x.rank());
  return channels;
}

// Calls work(channel, begin, end) for runs of elements of one channel.
template <typename Work>
void ForEachRun(const Channels& channels, int64_t count, ThreadPool* pool,
                const Work& work) {
  pool->ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t run = begin / channels.run;
      const int64_t stop = std::min(end, (run + 1) * channels.run);
      work(run % channels.count, begin, stop);
      begin = stop;
    }
  });
}

// The least and the largest value of `bits`, or of the type where that is
// narrower or has 16 bits and more.
template <typename Q>
struct Ends {
  explicit Ends(int64_t bits) {
    constexpr int kWidth = 8 * static_cast<int>(sizeof(Q));
    const int64_t used = kWidth == 8 ? std::min<int64_t>(bits, kWidth) : kWidth;
    const int64_t span = int64_t{1} << used;
    least = std::is_signed_v<Q> ? -span / 2 : 0;
    most = std::is_signed_v<Q> ? span / 2 - 1 : span - 1;
  }
  int64_t least, most;
};

// Floats hold all values of up to 16 bits, and sums of two.
template <typename Q>
using Arithmetic = std::conditional_t<(sizeof(Q) <= 2), float, double>;

template <typename T, typename Q>
void QuantizeRun(const T* x, int64_t count, float scale, Q zero_point,
                 const Ends<Q>& ends, Q* y) {
  using A = Arithmetic<Q>;
  const A offset = static_cast<A>(zero_point);
  A values[kInnerLoop];
  for (int64_t first = 0; first < count; first += kInnerLoop) {
    const int64_t block = std::min(kInnerLoop, count - first);
    for (int64_t i = 0; i < block; ++i) {
      const A quotient = static_cast<A>(x[first + i] / static_cast<T>(scale));
      values[i] = RoundToEven(quotient) + offset;
    }
    ClampEach(static_cast<A>(ends.least), static_cast<A>(ends.most), block,
              values);
    for (int64_t i = 0; i < block; ++i) {
      y[first + i] = static_cast<Q>(values[i]);
    }
  }
}

template <typename Q>
void DequantizeRun(const Q* x, int64_t count, float scale, Q zero_point,
                   float* y) {
  if constexpr (sizeof(Q) <= 2) {
    const int32_t offset = zero_point;
    for (int64_t i = 0; i < count; ++i) {
      y[i] = static_cast<float>(static_cast<int32_t>(x[i]) - offset) * scale;
    }
  } else {
    const int64_t offset = zero_point;
    for (int64_t i = 0; i < count; ++i) {
      y[i] = static_cast<float>(static_cast<int64_t>(x[i]) - offset) * scale;
    }
  }
}

#define OPTFARM_LINEAR_TYPES(VISIT) \
  VISIT(DT_INT8)                    \
  VISIT(DT_UINT8)                   \
  VISIT(DT_INT16)                   \
  VISIT(DT_UINT16)                  \
  VISIT(DT_INT32)

// Calls visit(Q()) for the type of quantized values.
template <typename Visit>
absl::Status VisitQuantized(DataType dtype, const Visit& visit) {
  switch (dtype) {
#define OPTFARM_LINEAR_CASE(type) \
  case tensorflow::type:          \
    return visit(ElementOf<tensorflow::type>::Type());
    OPTFARM_LINEAR_TYPES(OPTFARM_LINEAR_CASE)
#undef OPTFARM_LINEAR_CASE
    default:
      return UnsupportedDtype("Q", dtype);
  }
}

// How TensorFlow Lite's runtimes round where they do not round half to even.
struct LiteRounding {
  // Where not 0: x are multiples of it.
  float input_scale = 0;
  enum class Halves { kToEven, kAway, kUp } halves = Halves::kToEven;
};

// Makes a step of a multiple of `input_scale`.
class StepRescaler {
 public:
  StepRescaler(float input_scale, float scale, int32_t zero, int32_t least)
      : input_scale_(input_scale),
        factor_(static_cast<int32_t>(
            std::nearbyint(256 * std::min(input_scale / scale, kMostRatio)))),
        zero_(zero),
        least_(least) {}

  void operator()(const float* x, int64_t count, uint8_t* y) const {
    for (int64_t i = 0; i < count; i += kInnerLoop) {
      RunBlock(x + i, std::min(kInnerLoop, count - i), y + i);
    }
  }

 private:
  // A step of more than this many is beyond all values, whatever the zero
  // point; so are more steps of more than 1/4. Products are below 2^31.
  static constexpr float kMostRatio = 1 << 12, kMostSteps = 1 << 10;

  void RunBlock(const float* x, int64_t count, uint8_t* y) const {
    float steps[kInnerLoop];
    for (int64_t i = 0; i < count; ++i) steps[i] = x[i] / input_scale_;
    ClampEach(-kMostSteps, kMostSteps, count, steps);
    for (int64_t i = 0; i < count; ++i) {
      const auto whole = static_cast<int32_t>(RoundToEven(steps[i]));
      const int32_t value = ((factor_ * whole + 128) >> 8) + zero_;
      y[i] =
          static_cast<uint8_t>(std::min(std::max(value, least_), least_ + 255));
    }
  }

  const float input_scale_;
  const int32_t factor_;
  const int32_t zero_;
  const int32_t least_;
};

// Sums of floats are not exact: what is this near to a half is one.
// UNITS: steps.
constexpr double kNearHalf = 1.0 / 16384;

class HalfRounder {
 public:
  HalfRounder(float scale, int32_t zero, int32_t least, bool is_away)
      : scale_(scale), zero_(zero), least_(least), is_away_(is_away) {}

  void operator()(const float* x, int64_t count, uint8_t* y) const {
    for (int64_t i = 0; i < count; i += kInnerLoop) {
      RunBlock(x + i, std::min(kInnerLoop, count - i), y + i);
    }
  }

 private:
  static constexpr double kMost = 1 << 20, kHalf = 0.5 + kNearHalf;

  void RunBlock(const float* x, int64_t count, uint8_t* y) const {
    double values[kInnerLoop];
    for (int64_t i = 0; i < count; ++i) {
      values[i] = static_cast<double>(x[i]) / scale_ + zero_;
    }
    ClampEach(-kMost, kMost, count, values);
    if (is_away_) {
      for (int64_t i = 0; i < count; ++i) {
        values[i] += std::copysign(kHalf, values[i]);
      }
    } else {
      // What is not negative is rounded down by the conversion.
      for (int64_t i = 0; i < count; ++i) values[i] += kHalf + kMost;
    }
    int32_t whole[kInnerLoop];
    for (int64_t i = 0; i < count; ++i) {
      whole[i] = static_cast<int32_t>(values[i]);
    }
    const int32_t shift = is_away_ ? 0 : static_cast<int32_t>(kMost);
    for (int64_t i = 0; i < count; ++i) {
      y[i] = static_cast<uint8_t>(
          std::min(std::max(whole[i] - shift, least_), least_ + 255));
    }
  }

  const double scale_;
  const double zero_;
  const int32_t least_;
  const bool is_away_;
};

absl::Status QuantizeAsLite(const Tensor& x, const Tensor& scale,
                            const Tensor& zero_point,
                            const LiteRounding& rounding,
                            KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireDtype(x, "x", tensorflow::DT_FLOAT));
  const bool is_signed = zero_point.dtype() == tensorflow::DT_INT8;
  const float step = scale.num_elements() == 1 ? scale.data<float>()[0] : 0;
  if ((!is_signed && zero_point.dtype() != tensorflow::DT_UINT8) ||
      !(step > 0) || !(rounding.input_scale >= 0)) {
    return absl::InvalidArgumentError(
        "'input_scale' and 'rounding' are for int8 or uint8 with one scale, "
        "and scales above 0");
  }
  const int32_t zero =
      is_signed ? zero_point.data<int8_t>()[0] : zero_point.data<uint8_t>()[0];
  const int32_t least = is_signed ? -128 : 0;
  const StepRescaler rescale(rounding.input_scale, step, zero, least);
  const HalfRounder round(step, zero, least,
                          rounding.halves == LiteRounding::Halves::kAway);
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * y, context->AllocateOutput(0, zero_point.dtype(), x.shape()));
  const float* from = x.data<float>();
  auto* to = static_cast<uint8_t*>(y->raw());
  context->pool()->ParallelFor(
      x.num_elements(), kGrain, [&](int64_t begin, int64_t end) {
        if (rounding.input_scale > 0) {
          rescale(from + begin, end - begin, to + begin);
        } else {
          round(from + begin, end - begin, to + begin);
        }
      });
  return absl::OkStatus();
}

absl::StatusOr<LiteRounding> ReadLiteRounding(const tensorflow::NodeDef& node) {
  LiteRounding rounding;
  OPTFARM_ASSIGN_OR_RETURN(rounding.input_scale,
                           graph::GetFloatOr(node, "input_scale", 0));
  OPTFARM_ASSIGN_OR_RETURN(
      const std::string name,
      graph::GetStringOr(node, "rounding", "half_to_even"));
  if (name == "half_away") rounding.halves = LiteRounding::Halves::kAway;
  if (name == "half_up") rounding.halves = LiteRounding::Halves::kUp;
  return rounding;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeQuantize(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(const LinearAttributes attributes,
                           ReadAttributes(node));
  OPTFARM_ASSIGN_OR_RETURN(const LiteRounding rounding, ReadLiteRounding(node));
  return MakeKernel([attributes,
                     rounding](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    const Tensor& x = context->input(0);
    const Tensor& scale = context->input(1);
    const Tensor& zero_point = context->input(2);
    OPTFARM_ASSIGN_OR_RETURN(const Channels channels,
                             FindChannels(x, scale, zero_point, attributes));
    if (rounding.input_scale != 0 ||
        rounding.halves != LiteRounding::Halves::kToEven) {
      return QuantizeAsLite(x, scale, zero_point, rounding, context);
    }
    return VisitQuantized(zero_point.dtype(), [&](auto zero) -> absl::Status {
      using Q = decltype(zero);
      const Ends<Q> ends(attributes.bits);
      OPTFARM_ASSIGN_OR_RETURN(
          Tensor * y,
          context->AllocateOutput(0, zero_point.dtype(), x.shape()));
      return VisitFloat(x.dtype(), "x", [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        ForEachRun(channels, x.num_elements(), context->pool(),
                   [&](int64_t c, int64_t begin, int64_t end) {
                     QuantizeRun(x.data<T>() + begin, end - begin,
                                 scale.data<float>()[c],
                                 zero_point.data<Q>()[c], ends,
                                 y->data<Q>() + begin);
                   });
        return absl::OkStatus();
      });
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeDequantize(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const LinearAttributes attributes,
                           ReadAttributes(node));
  return MakeKernel([attributes](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    const Tensor& x = context->input(0);
    const Tensor& scale = context->input(1);
    const Tensor& zero_point = context->input(2);
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(x, zero_point));
    OPTFARM_ASSIGN_OR_RETURN(const Channels channels,
                             FindChannels(x, scale, zero_point, attributes));
    return VisitQuantized(x.dtype(), [&](auto zero) -> absl::Status {
      using Q = decltype(zero);
      OPTFARM_ASSIGN_OR_RETURN(
          Tensor * y,
          context->AllocateOutput(0, tensorflow::DT_FLOAT, x.shape()));
      ForEachRun(channels, x.num_elements(), context->pool(),
                 [&](int64_t c, int64_t begin, int64_t end) {
                   DequantizeRun(
                       x.data<Q>() + begin, end - begin, scale.data<float>()[c],
                       zero_point.data<Q>()[c], y->data<float>() + begin);
                 });
      return absl::OkStatus();
    });
  });
}

}  // namespace

void AddLinearQuantizationKernels(KernelCatalog* catalog) {
  catalog->Add("QuantizeLinear", MakeQuantize);
  catalog->Add("DequantizeLinear", MakeDequantize);
}

}  // namespace optfarm::runtime
