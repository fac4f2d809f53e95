#include "engine/runtime/reference/quantized/step_hard_swish.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/reference/arguments.h"

namespace optfarm::runtime {
namespace {

// UNITS: elements; a thread's share is worth at least this many.
constexpr int64_t kGrain = 4096;

// fraction / 2^15 * 2^exponent, where fraction has 15 bits.
struct Factor {
  explicit Factor(double value) {
    // To 31 bits first, as the interpreter does.
    int64_t wide = std::llround(std::ldexp(std::frexp(value, &exponent), 31));
    if (wide == int64_t{1} << 31) {
      wide /= 2;
      ++exponent;
    }
    fraction = std::min<int64_t>((wide + (1 << 15)) >> 16, INT16_MAX);
  }

  int64_t fraction = 0;
  int exponent = 0;
};

int64_t Saturated(int64_t value) {
  return std::clamp<int64_t>(value, INT16_MIN, INT16_MAX);
}

// a * b / 2^15, halves up in magnitude where the product is not negative.
int64_t RoundedProduct(int64_t a, int64_t b) {
  const int64_t product = a * b;
  const int64_t nudge = product >= 0 ? 1 << 14 : 1 - (1 << 14);
  return Saturated((product + nudge) / (1 << 15));
}

// value / 2^bits, halves away from zero.
int64_t RoundedShift(int64_t value, int bits) {
  if (bits == 0) return value;
  const int64_t half = int64_t{1} << (bits - 1);
  return value >= 0 ? (value + half) >> bits : -((-value + half) >> bits);
}

// x * relu6(x + 3) / 6 on steps of the scales.
class StepHardSwish {
 public:
  StepHardSwish(float input_scale, float output_scale)
      : to_output_(double{input_scale / kFineSteps} / output_scale),
        to_gate_(double{input_scale / kFineSteps} / double{kGateStep}) {}

  bool is_valid() const { return to_output_.exponent <= 0; }

  int64_t operator()(int64_t steps) const {
    const int64_t fine = Saturated(steps * kFineSteps);
    const int64_t value = RoundedProduct(fine, to_output_.fraction);
    // (Gate(fine) + 2^15) / 2^16 is relu6(x + 3) / 6.
    const int64_t gate = (Gate(fine) + (1 << 15)) >> 1;
    const int64_t product = Saturated(gate * value / (1 << 15));
    return RoundedShift(product, std::min(-to_output_.exponent, 30));
  }

 private:
  static constexpr int kFineSteps = 128;
  // One step of the gate: 2^15 of them are 3.
  static constexpr float kGateStep = 3.0f / 32768.0f;

  int64_t Gate(int64_t fine) const {
    const int exponent = std::min(to_gate_.exponent, 30);
    if (exponent > 0) fine = Saturated(fine * (int64_t{1} << (exponent - 1)));
    const int64_t gate = RoundedProduct(fine, to_gate_.fraction);
    return exponent > 0 ? Saturated(gate * 2)
                        : RoundedShift(gate, std::min(-exponent, 30));
  }

  const Factor to_output_, to_gate_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeStepHardSwish(float input_scale,
                                                          float output_scale) {
  const bool is_positive = std::isfinite(input_scale) && input_scale > 0 &&
                           std::isfinite(output_scale) && output_scale > 0;
  const StepHardSwish compute(is_positive ? input_scale : 1,
                              is_positive ? output_scale : 1);
  if (!is_positive || !compute.is_valid()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'input_scale' ", input_scale, " and 'output_scale' ", output_scale,
        " must be above 0, the first less than 128 times the second"));
  }
  return MakeKernel([=](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& x = context->input(0);
    OPTFARM_RETURN_IF_ERROR(RequireDtype(x, "features", tensorflow::DT_FLOAT));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * y,
                             context->AllocateOutput(0, x.dtype(), x.shape()));
    context->pool()->ParallelFor(
        x.num_elements(), kGrain, [&](int64_t begin, int64_t end) {
          // More steps than 8-bit values are apart saturate.
          constexpr float kMost = 1 << 10;
          for (int64_t i = begin; i < end; ++i) {
            float steps = std::nearbyint(x.data<float>()[i] / input_scale);
            steps = steps > -kMost ? steps : -kMost;
            steps = steps < kMost ? steps : kMost;
            y->data<float>()[i] =
                static_cast<float>(compute(static_cast<int64_t>(steps))) *
                output_scale;
          }
        });
    return absl::OkStatus();
  });
}

}  // namespace optfarm::runtime
