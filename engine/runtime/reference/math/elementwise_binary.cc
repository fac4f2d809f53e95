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
absl::Status CheckDivisorOf(const Tensor& y, Divisor divisor) {
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

absl::Status CheckDivisor(const Tensor& y, Divisor divisor) {
  if (divisor == Divisor::kAny) return absl::OkStatus();
  return VisitNumberOrComplex(y.dtype(), "y", [&](auto tag) {
    return CheckDivisorOf<typename decltype(tag)::type>(y, divisor);
  });
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
absl::Status CalculateAlike(const BinaryRow& row, KernelContext* context) {
  const Tensor &x = context->input(0), &y = context->input(1);
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out, context->ForwardOrAllocateOutput(
                                             0, 0, x.dtype(), x.shape()));
  const char* const a = static_cast<const char*>(x.raw());
  const char* const b = static_cast<const char*>(y.raw());
  char* const to = static_cast<char*>(out->raw());
  context->pool()->ParallelFor(
      x.num_elements(), kBinaryGrain, [&](int64_t begin, int64_t end) {
        const int64_t first = begin * row.in_bytes;
        row.Run(a + first, true, b + first, true, end - begin, to + first);
      });
  return absl::OkStatus();
}

absl::Status Calculate(BinaryRowChoice choose, Divisor divisor,
                       KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
  const Tensor &x = context->input(0), &y = context->input(1);
  BinaryRow row;
  OPTFARM_RETURN_IF_ERROR(choose(x.dtype(), &row));
  OPTFARM_RETURN_IF_ERROR(RequireSameDtype(x, y));
  OPTFARM_RETURN_IF_ERROR(CheckDivisor(y, divisor));
  if (x.shape() == y.shape()) return CalculateAlike(row, context);
  OPTFARM_ASSIGN_OR_RETURN(const BroadcastPlan plan,
                           PlanBroadcast(x.shape(), y.shape()));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out, PlaceOutput(context, plan));
  RunBinary(row, context->input(0), context->input(1), plan, context->pool(),
            out);
  return absl::OkStatus();
}

std::unique_ptr<Kernel> MakeCalculation(BinaryRowChoice choose,
                                        Divisor divisor) {
  return MakeKernel([choose, divisor](KernelContext* context) {
    return Calculate(choose, divisor, context);
  });
}

template <typename Op, Divisor kDivisor = Divisor::kAny>
absl::StatusOr<std::unique_ptr<Kernel>> MakeArithmetic(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  return MakeCalculation(ChooseNumberRow<Op>, kDivisor);
}

// The ops that complex numbers have too.
template <typename Op, Divisor kDivisor = Divisor::kAny>
absl::StatusOr<std::unique_ptr<Kernel>> MakeFieldArithmetic(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "T", OPTFARM_NUMBER_AND_COMPLEX_TYPES));
  return MakeCalculation(ChooseNumberOrComplexRow<Op>, kDivisor);
}

absl::Status ChooseTextRow(DataType dtype, BinaryRow* row) {
  if (dtype != tensorflow::DT_STRING) return UnsupportedDtype("x", dtype);
  *row = BinaryRowOf<AddOp, std::string>();
  return absl::OkStatus();
}

// Add joins texts as well; AddV2 does not.
absl::StatusOr<std::unique_ptr<Kernel>> MakeAdd(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype,
                           graph::GetTypeOr(node, "T", tensorflow::DT_FLOAT));
  if (dtype != tensorflow::DT_STRING) return MakeFieldArithmetic<AddOp>(node);
  return MakeKernel([](KernelContext* context) {
    return ComputeBroadcast(context, ChooseTextRow);
  });
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> MakeFloatArithmetic(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(
      node, "T", {tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE}));
  return MakeCalculation(ChooseFloatRow<Op>, Divisor::kAny);
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
