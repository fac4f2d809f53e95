// QuantizeAndDequantize in its three versions: values take the steps that
// quantized values of some bits would have, and stay floating.

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
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

constexpr int64_t kMostBits = 62;

struct Rounding {
  bool is_signed = true;
  // 0: an input says it.
  int64_t bits = 8;
  bool is_range_given = false;
  bool is_narrow = false;
  bool rounds_half_up = false;
  // -1: one range for all.
  int64_t axis = -1;
  // Of version 1; nothing: inputs say it.
  std::optional<float> min, max;
};

absl::Status CheckBits(int64_t bits) {
  if (bits >= 1 && bits <= kMostBits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'num_bits' must be from 1 to ", kMostBits, ", not ", bits));
}

// The lowest and the highest quantized value, and a range widened so that zero
// and one end are quantized exactly.
template <typename T>
struct Steps {
  Steps(const Rounding& rounding, int64_t bits, T least, T most) {
    const int64_t half = int64_t{1} << (bits - 1);
    const T low = static_cast<T>(
        rounding.is_signed ? (rounding.is_narrow ? 1 - half : -half) : 0);
    const T high = static_cast<T>(rounding.is_signed ? half - 1 : 2 * half - 1);
    constexpr T kNone = std::numeric_limits<T>::max();
    const T by_least = low * least > 0 ? low / least : kNone;
    const T by_most = high * most > 0 ? high / most : kNone;
    min = least;
    max = most;
    if (by_least < by_most) {
      scale = by_least;
      step = least / low;
      max = high * step;
    } else {
      scale = by_most;
      step = high == 0 ? T() : most / high;
      min = low * step;
    }
  }
  T min, max, scale, step;
};

template <typename T>
void Round(const Steps<T>& steps, const Rounding& rounding, const T* in,
           int64_t count, T* out) {
  for (int64_t i = 0; i < count; ++i) {
    T value = in[i];
    if (rounding.is_range_given) {
      value = std::max(std::min(value, steps.max), steps.min);
    }
    value *= steps.scale;
    value = rounding.rounds_half_up ? std::floor(value + T(0.5))
                                    : std::nearbyint(value);
    out[i] = value * steps.step;
  }
}

class QuantizeAndDequantize final : public Kernel {
 public:
  explicit QuantizeAndDequantize(const Rounding& rounding)
      : rounding_(rounding) {}

  absl::Status Compute(KernelContext* context) const override {
    const bool has_range_inputs = !rounding_.min.has_value();
    const int count =
        1 + (has_range_inputs ? 2 : 0) + (rounding_.bits == 0 ? 1 : 0);
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, count));
    const Tensor& input = context->input(0);
    int64_t bits = rounding_.bits;
    if (bits == 0) {
      OPTFARM_ASSIGN_OR_RETURN(
          bits, ReadInteger(context->input(count - 1), "num_bits"));
      OPTFARM_RETURN_IF_ERROR(CheckBits(bits));
    }
    if (rounding_.axis >= input.rank()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'axis' is ", rounding_.axis, ", the input has rank ", input.rank()));
    }
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, input.dtype(), input.shape()));
    if (input.num_elements() == 0) return absl::OkStatus();
    return VisitFloat(input.dtype(), "T", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      return Run<T>(input, bits, *context, out);
    });
  }

 private:
  template <typename T>
  absl::Status Run(const Tensor& input, int64_t bits,
                   const KernelContext& context, Tensor* out) const {
    const bool is_by_channel = rounding_.axis >= 0;
    const int64_t channels = is_by_channel ? input.dim(rounding_.axis) : 1;
    OPTFARM_ASSIGN_OR_RETURN(
        const std::vector<T> least,
        EndOf<T>(input, channels, /*is_most=*/false, context));
    OPTFARM_ASSIGN_OR_RETURN(
        const std::vector<T> most,
        EndOf<T>(input, channels, /*is_most=*/true, context));
    const int64_t run = RunOf(input);
    for (int64_t c = 0; c < channels; ++c) {
      if (!(least[c] <= most[c])) {
        return absl::InvalidArgumentError(absl::StrCat(
            "the range goes from ", least[c], " down to ", most[c]));
      }
      const Steps<T> steps(rounding_, bits, least[c], most[c]);
      for (int64_t i = c * run; i < input.num_elements(); i += channels * run) {
        Round(steps, rounding_, input.data<T>() + i, run, out->data<T>() + i);
      }
    }
    return absl::OkStatus();
  }

  // Elements of one channel that stand together.
  int64_t RunOf(const Tensor& input) const {
    int64_t run = 1;
    for (int i = static_cast<int>(rounding_.axis) + 1; i < input.rank(); ++i) {
      run *= input.dim(i);
    }
    return run;
  }

  // The least or the largest value of each channel: given or found.
  template <typename T>
  absl::StatusOr<std::vector<T>> EndOf(const Tensor& input, int64_t channels,
                                       bool is_most,
                                       const KernelContext& context) const {
    if (rounding_.is_range_given && rounding_.min.has_value()) {
      return std::vector<T>(
          1, static_cast<T>(is_most ? *rounding_.max : *rounding_.min));
    }
    if (rounding_.is_range_given) {
      const Tensor& end = context.input(is_most ? 2 : 1);
      OPTFARM_RETURN_IF_ERROR(RequireSameDtype(input, end));
      if (end.num_elements() != channels) {
        return absl::InvalidArgumentError(
            absl::StrCat("the range must have ", channels,
                         " values at each end, it has ", end.num_elements()));
      }
      return std::vector<T>(end.data<T>(), end.data<T>() + channels);
    }
    const int64_t run = RunOf(input);
    std::vector<T> ends(static_cast<size_t>(channels), T());
    std::vector<bool> is_set(ends.size(), false);
    for (int64_t i = 0; i < input.num_elements(); ++i) {
      const auto c = static_cast<size_t>(i / run % channels);
      const T value = input.data<T>()[i];
      if (!is_set[c] || (is_most ? value > ends[c] : value < ends[c])) {
        ends[c] = value;
      }
      is_set[c] = true;
    }
    return ends;
  }

  const Rounding rounding_;
};

template <int kVersion>
absl::StatusOr<std::unique_ptr<Kernel>> MakeQuantizeAndDequantize(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  Rounding rounding;
  OPTFARM_ASSIGN_OR_RETURN(rounding.is_signed,
                           graph::GetBoolOr(node, "signed_input", true));
  OPTFARM_ASSIGN_OR_RETURN(
      rounding.is_range_given,
      graph::GetBoolOr(node, "range_given", kVersion == 3));
  OPTFARM_ASSIGN_OR_RETURN(rounding.is_narrow,
                           graph::GetBoolOr(node, "narrow_range", false));
  if (kVersion > 1) {
    OPTFARM_ASSIGN_OR_RETURN(rounding.axis, graph::GetIntOr(node, "axis", -1));
  }
  if (rounding.axis < -1) {
    return absl::InvalidArgumentError(
        absl::StrCat("'axis' must be -1 or more, not ", rounding.axis));
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const std::string mode,
      graph::GetStringOr(node, "round_mode", "HALF_TO_EVEN"));
  if (mode != "HALF_TO_EVEN" && mode != "HALF_UP") {
    return absl::InvalidArgumentError(absl::StrCat(
        "'round_mode' must be HALF_TO_EVEN or HALF_UP, not ", mode));
  }
  rounding.rounds_half_up = mode == "HALF_UP";
  if (kVersion == 3) {
    rounding.bits = 0;
  } else {
    OPTFARM_ASSIGN_OR_RETURN(rounding.bits,
                             graph::GetIntOr(node, "num_bits", 8));
    OPTFARM_RETURN_IF_ERROR(CheckBits(rounding.bits));
  }
  if (kVersion == 1) {
    OPTFARM_ASSIGN_OR_RETURN(rounding.min,
                             graph::GetFloatOr(node, "input_min", 0.0f));
    OPTFARM_ASSIGN_OR_RETURN(rounding.max,
                             graph::GetFloatOr(node, "input_max", 0.0f));
  }
  return std::make_unique<QuantizeAndDequantize>(rounding);
}

}  // namespace

void AddQuantizeAndDequantizeKernels(KernelCatalog* catalog) {
  catalog->Add("QuantizeAndDequantize", MakeQuantizeAndDequantize<1>);
  catalog->Add("QuantizeAndDequantizeV2", MakeQuantizeAndDequantize<2>);
  catalog->Add("QuantizeAndDequantizeV3", MakeQuantizeAndDequantize<3>);
}

}  // namespace optfarm::runtime
