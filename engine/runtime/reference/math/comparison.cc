// Comparisons of two elements, and logic, with broadcasting.

#include <complex>
#include <string>

#include "base/status_macros.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/math/binary_loop.h"

namespace optfarm::runtime {
namespace {

#define OPTFARM_COMPARISON(name, op)         \
  struct name {                              \
    template <typename T>                    \
    static bool Of(const T& a, const T& b) { \
      return a op b;                         \
    }                                        \
  }
OPTFARM_COMPARISON(EqualOp, ==);
OPTFARM_COMPARISON(NotEqualOp, !=);
OPTFARM_COMPARISON(LessOp, <);
OPTFARM_COMPARISON(LessEqualOp, <=);
OPTFARM_COMPARISON(GreaterOp, >);
OPTFARM_COMPARISON(GreaterEqualOp, >=);
OPTFARM_COMPARISON(LogicalAndOp, &&);
OPTFARM_COMPARISON(LogicalOrOp, ||);
#undef OPTFARM_COMPARISON

template <typename Op, typename T>
absl::Status Compare(KernelContext* context) {
  OPTFARM_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanInputs(*context));
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * out,
      context->AllocateOutput(0, tensorflow::DT_BOOL, plan.output));
  RunAll<Op>(context->input(0).data<T>(), context->input(1).data<T>(), plan,
             context->pool(), out->data<bool>());
  return absl::OkStatus();
}

template <typename Op, bool kAlsoTexts>
absl::StatusOr<std::unique_ptr<Kernel>> MakeComparison(
    const tensorflow::NodeDef& node) {
  if (kAlsoTexts) {
    OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(
        node, "T",
        {tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE, tensorflow::DT_INT8,
         tensorflow::DT_INT16, tensorflow::DT_INT32, tensorflow::DT_INT64,
         tensorflow::DT_UINT8, tensorflow::DT_UINT16, tensorflow::DT_UINT32,
         tensorflow::DT_UINT64, tensorflow::DT_COMPLEX64,
         tensorflow::DT_COMPLEX128, tensorflow::DT_BOOL,
         tensorflow::DT_STRING}));
  } else {
    OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  }
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const DataType dtype = context->input(0).dtype();
    if constexpr (kAlsoTexts) {
      if (dtype == tensorflow::DT_BOOL) return Compare<Op, bool>(context);
      if (dtype == tensorflow::DT_STRING) {
        return Compare<Op, std::string>(context);
      }
      if (dtype == tensorflow::DT_COMPLEX64 ||
          dtype == tensorflow::DT_COMPLEX128) {
        return VisitComplex(dtype, "x", [&](auto tag) -> absl::Status {
          return Compare<Op, typename decltype(tag)::type>(context);
        });
      }
    }
    return VisitNumber(dtype, "x", [&](auto tag) -> absl::Status {
      return Compare<Op, typename decltype(tag)::type>(context);
    });
  });
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> MakeLogical(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    OPTFARM_RETURN_IF_ERROR(
        RequireDtype(context->input(0), "x", tensorflow::DT_BOOL));
    return Compare<Op, bool>(context);
  });
}

}  // namespace

void AddComparisonKernels(KernelCatalog* catalog) {
  catalog->Add("Equal", MakeComparison<EqualOp, true>);
  catalog->Add("NotEqual", MakeComparison<NotEqualOp, true>);
  catalog->Add("Less", MakeComparison<LessOp, false>);
  catalog->Add("LessEqual", MakeComparison<LessEqualOp, false>);
  catalog->Add("Greater", MakeComparison<GreaterOp, false>);
  catalog->Add("GreaterEqual", MakeComparison<GreaterEqualOp, false>);
  catalog->Add("LogicalAnd", MakeLogical<LogicalAndOp>);
  catalog->Add("LogicalOr", MakeLogical<LogicalOrOp>);
}

}  // namespace optfarm::runtime
