// Functions of two elements, with broadcasting: arithmetic.

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/math/binary_functions.h"
#include "engine/runtime/reference/math/binary_loop.h"

namespace optfarm::runtime {
namespace {

// What must hold of the second input's integers before the loop starts.
enum class Divisor { kAny, kNotZero, kNotNegative };

template <typename T>
absl::Status CheckDivisor(const Tensor& y, Divisor divisor) {
  if constexpr (std::is_integral_v<T>) {
    if (divisor == Divisor::kNotZero) {
      for (T value : y.flat<T>()) {
        if (value == T(0)) {
          return absl::InvalidArgumentError("integer division by zero");
        }
      }
    }
    if constexpr (std::is_signed_v<T>) {
      if (divisor == Divisor::kNotNegative) {
        for (T value : y.flat<T>()) {
          if (value < T(0)) {
            return absl::InvalidArgumentError(absl::StrCat(
                "an integer cannot be raised to the power ", value));
          }
        }
      }
    }
  }
  return absl::OkStatus();
}

// An output for `plan`, in the place of an input of the same shape if possible.
absl::StatusOr<Tensor*> PlaceOutput(KernelContext* context,
                                    const BroadcastPlan& plan) {
  const int from = context->input(0).shape() == plan.output ? 0 : 1;
  if (!(context->input(from).shape() == plan.output)) {
    return context->AllocateOutput(0, context->input(0).dtype(), plan.output);
  }
  return context->ForwardOrAllocateOutput(0, from, context->input(0).dtype(),
                                          plan.output);
}

// Inputs of one shape: nothing to plan, which is half of what a few elements
// take.
template <typename Op, typename T>
absl::Status CalculateAlike(KernelContext* context) {
  const Tensor& x = context->input(0);
  const Tensor& y = context->input(1);
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out, context->ForwardOrAllocateOutput(
                                             0, 0, x.dtype(), x.shape()));
  const T *a = x.data<T>(), *b = y.data<T>();
  T* to = out->data<T>();
  context->pool()->ParallelFor(
      x.num_elements(), kBinaryGrain, [&](int64_t begin, int64_t end) {
        RunRow<Op>(a + begin, true, b + begin, true, end - begin, to + begin);
      });
  return absl::OkStatus();
}

template <typename Op, typename T>
absl::Status Calculate(KernelContext* context, Divisor divisor) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
  const Tensor &x = context->input(0), &y = context->input(1);
  OPTFARM_RETURN_IF_ERROR(RequireSameDtype(x, y));
  OPTFARM_RETURN_IF_ERROR(CheckDivisor<T>(y, divisor));
  if (x.shape() == y.shape()) return CalculateAlike<Op, T>(context);
  OPTFARM_ASSIGN_OR_RETURN(const BroadcastPlan plan,
                           PlanBroadcast(x.shape(), y.shape()));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out, PlaceOutput(context, plan));
  RunAll<Op>(context->input(0).data<T>(), context->input(1).data<T>(), plan,
             context->pool(), out->data<T>());
  return absl::OkStatus();
}

template <typename Op, Divisor kDivisor = Divisor::kAny>
absl::StatusOr<std::unique_ptr<Kernel>> MakeArithmetic(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    return VisitNumber(context->input(0).dtype(), "x",
                       [&](auto tag) -> absl::Status {
                         using T = typename decltype(tag)::type;
                         return Calculate<Op, T>(context, kDivisor);
                       });
  });
}

// The ops that complex numbers have too.
template <typename Op, Divisor kDivisor = Divisor::kAny>
absl::StatusOr<std::unique_ptr<Kernel>> MakeFieldArithmetic(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "T", OPTFARM_NUMBER_AND_COMPLEX_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    return VisitNumberOrComplex(context->input(0).dtype(), "x",
                                [&](auto tag) -> absl::Status {
                                  using T = typename decltype(tag)::type;
                                  return Calculate<Op, T>(context, kDivisor);
                                });
  });
}

// Add joins texts as well; AddV2 does not.
absl::StatusOr<std::unique_ptr<Kernel>> MakeAdd(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype,
                           graph::GetTypeOr(node, "T", tensorflow::DT_FLOAT));
  if (dtype != tensorflow::DT_STRING) return MakeFieldArithmetic<AddOp>(node);
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanInputs(*context));
    OPTFARM_RETURN_IF_ERROR(
        RequireDtype(context->input(0), "x", tensorflow::DT_STRING));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out,
        context->AllocateOutput(0, tensorflow::DT_STRING, plan.output));
    RunAll<AddOp>(context->input(0).data<std::string>(),
                  context->input(1).data<std::string>(), plan, context->pool(),
                  out->data<std::string>());
    return absl::OkStatus();
  });
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> MakeFloatArithmetic(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(
      node, "T", {tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE}));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    switch (context->input(0).dtype()) {
      case tensorflow::DT_FLOAT:
        return Calculate<Op, float>(context, Divisor::kAny);
      case tensorflow::DT_DOUBLE:
        return Calculate<Op, double>(context, Divisor::kAny);
      default:
        return UnsupportedDtype("x", context->input(0).dtype());
    }
  });
}

}  // namespace

void AddBinaryKernels(KernelCatalog* catalog) {
  catalog->Add("Add", MakeAdd);
  catalog->Add("AddV2", MakeFieldArithmetic<AddOp>);
  catalog->Add("Sub", MakeFieldArithmetic<SubOp>);
  catalog->Add("Mul", MakeFieldArithmetic<MulOp>);
  catalog->Add("Div", MakeFieldArithmetic<DivOp, Divisor::kNotZero>);
  catalog->Add("RealDiv", MakeFieldArithmetic<DivOp, Divisor::kNotZero>);
  catalog->Add("TruncateDiv", MakeArithmetic<DivOp, Divisor::kNotZero>);
  catalog->Add("FloorDiv", MakeArithmetic<FloorDivOp, Divisor::kNotZero>);
  catalog->Add("Mod", MakeArithmetic<TruncateModOp, Divisor::kNotZero>);
  catalog->Add("TruncateMod", MakeArithmetic<TruncateModOp, Divisor::kNotZero>);
  catalog->Add("FloorMod", MakeArithmetic<FloorModOp, Divisor::kNotZero>);
  catalog->Add("Pow", MakeArithmetic<PowOp, Divisor::kNotNegative>);
  catalog->Add("SquaredDifference", MakeFieldArithmetic<SquaredDifferenceOp>);
  catalog->Add("Maximum", MakeArithmetic<MaximumOp>);
  catalog->Add("Minimum", MakeArithmetic<MinimumOp>);
  catalog->Add("DivNoNan", MakeFloatArithmetic<DivNoNanOp>);
  catalog->Add("MulNoNan", MakeFloatArithmetic<MulNoNanOp>);
  catalog->Add("Atan2", MakeFloatArithmetic<Atan2Op>);
}

}  // namespace optfarm::runtime
