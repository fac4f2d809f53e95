// FakeQuantWithMinMaxArgs, ...Vars, ...VarsPerChannel: floats rounded to the
// values that integers of some bits can express. The range is first
// nudged so that 0 is one of them.

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

struct QuantRange {
  float low = 0.0f;
  float high = 255.0f;
};

absl::StatusOr<QuantRange> ReadQuantRange(const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t bits,
                           graph::GetIntOr(node, "num_bits", 8));
  OPTFARM_ASSIGN_OR_RETURN(const bool is_narrow,
                           graph::GetBoolOr(node, "narrow_range", false));
  if (bits < 2 || bits > 16) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_bits is ", bits, ", must be within [2, 16]"));
  }
  return QuantRange{is_narrow ? 1.0f : 0.0f,
                    static_cast<float>((int64_t{1} << bits) - 1)};
}

// The range that is really expressed, and the step between two values.
struct Nudged {
  float min = 0.0f;
  float max = 0.0f;
  float scale = 1.0f;
};

// A range of one number, which everything is clamped to.
bool IsPoint(float min, float max) { return min == max && std::isfinite(min); }

absl::StatusOr<Nudged> Nudge(float min, float max, const QuantRange& bounds) {
  if (!(min < max) || !std::isfinite(min) || !std::isfinite(max)) {
    return absl::InvalidArgumentError(
        absl::StrCat("min (", min, ") must be below max (", max, ")"));
  }
  Nudged nudged;
  nudged.scale = (max - min) / (bounds.high - bounds.low);
  const float zero_point = bounds.low - min / nudged.scale;
  float q = 0.0f;
  if (zero_point < bounds.low) {
    q = bounds.low;
  } else if (zero_point > bounds.high) {
    q = bounds.high;
  } else {
    q = std::round(zero_point);
  }
  nudged.min = (bounds.low - q) * nudged.scale;
  nudged.max = (bounds.high - q) * nudged.scale;
  return nudged;
}

float Quantized(float x, const Nudged& n) {
  const float clamped = std::min(std::max(x, n.min), n.max) - n.min;
  return std::floor(clamped / n.scale + 0.5f) * n.scale + n.min;
}

absl::Status QuantizeAll(KernelContext* context, float min, float max,
                         const QuantRange& bounds) {
  const Tensor& in = context->input(0);
  OPTFARM_RETURN_IF_ERROR(RequireDtype(in, "inputs", tensorflow::DT_FLOAT));
  if (IsPoint(min, max)) {
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, in.dtype(), in.shape()));
    std::fill_n(out->data<float>(), in.num_elements(), min);
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(const Nudged nudged, Nudge(min, max, bounds));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out, context->ForwardOrAllocateOutput(
                                             0, 0, in.dtype(), in.shape()));
  const float* from = in.data<float>();
  float* to = out->data<float>();
  context->pool()->ParallelFor(in.num_elements(), 16 * 1024,
                               [&](int64_t begin, int64_t end) {
                                 for (int64_t i = begin; i < end; ++i)
                                   to[i] = Quantized(from[i], nudged);
                               });
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeWithArgs(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const QuantRange bounds, ReadQuantRange(node));
  OPTFARM_ASSIGN_OR_RETURN(const float min,
                           graph::GetFloatOr(node, "min", -6.0f));
  OPTFARM_ASSIGN_OR_RETURN(const float max,
                           graph::GetFloatOr(node, "max", 6.0f));
  return MakeKernel([bounds, min, max](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    return QuantizeAll(context, min, max, bounds);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeWithVars(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const QuantRange bounds, ReadQuantRange(node));
  return MakeKernel([bounds](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    for (int i : {1, 2}) {
      const absl::string_view name = i == 1 ? "min" : "max";
      OPTFARM_RETURN_IF_ERROR(
          RequireDtype(context->input(i), name, tensorflow::DT_FLOAT));
      OPTFARM_RETURN_IF_ERROR(RequireOneElement(context->input(i), name));
    }
    return QuantizeAll(context, *context->input(1).data<float>(),
                       *context->input(2).data<float>(), bounds);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakePerChannel(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const QuantRange bounds, ReadQuantRange(node));
  return MakeKernel([bounds](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    const Tensor& in = context->input(0);
    OPTFARM_RETURN_IF_ERROR(RequireDtype(in, "inputs", tensorflow::DT_FLOAT));
    if (in.rank() < 1) {
      return absl::InvalidArgumentError("'inputs' must not be a scalar");
    }
    const int64_t channels = in.dim(in.rank() - 1);
    for (int i : {1, 2}) {
      const absl::string_view name = i == 1 ? "min" : "max";
      OPTFARM_RETURN_IF_ERROR(
          RequireDtype(context->input(i), name, tensorflow::DT_FLOAT));
      OPTFARM_RETURN_IF_ERROR(
          RequireShape(context->input(i), name, Shape{channels}));
    }
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out, context->ForwardOrAllocateOutput(
                                               0, 0, in.dtype(), in.shape()));
    for (int64_t c = 0; c < channels; ++c) {
      const float min = context->input(1).data<float>()[c];
      const float max = context->input(2).data<float>()[c];
      const bool is_point = IsPoint(min, max);
      Nudged nudged;
      if (!is_point) {
        OPTFARM_ASSIGN_OR_RETURN(nudged, Nudge(min, max, bounds));
      }
      for (int64_t i = c; i < in.num_elements(); i += channels) {
        out->data<float>()[i] =
            is_point ? min : Quantized(in.data<float>()[i], nudged);
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace

void AddFakeQuantKernels(KernelCatalog* catalog) {
  catalog->Add("FakeQuantWithMinMaxArgs", MakeWithArgs);
  catalog->Add("FakeQuantWithMinMaxVars", MakeWithVars);
  catalog->Add("FakeQuantWithMinMaxVarsPerChannel", MakePerChannel);
}

}  // namespace optfarm::runtime
