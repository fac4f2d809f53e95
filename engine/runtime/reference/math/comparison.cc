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
OPTFARM_COMPARISON(LogicalAndOp, &&);
OPTFARM_COMPARISON(LogicalOrOp, ||);
#undef OPTFARM_COMPARISON

// Equality is known of all dtypes with elements.
template <typename Op>
absl::Status ChooseEqualityRow(DataType dtype, BinaryRow* row) {
  switch (dtype) {
    case tensorflow::DT_BOOL:
      *row = BinaryRowOf<Op, bool>();
      return absl::OkStatus();
    case tensorflow::DT_STRING:
      *row = BinaryRowOf<Op, std::string>();
      return absl::OkStatus();
    default:
      return ChooseNumberOrComplexRow<Op>(dtype, row);
  }
}

// Op of the second input and the first.
template <typename Op>
absl::Status ChooseSwappedRow(DataType dtype, BinaryRow* row) {
  OPTFARM_RETURN_IF_ERROR(ChooseNumberRow<Op>(dtype, row));
  row->is_swapped = true;
  return absl::OkStatus();
}

template <typename Op>
absl::Status ChooseLogicalRow(DataType dtype, BinaryRow* row) {
  if (dtype != tensorflow::DT_BOOL) return UnsupportedDtype("x", dtype);
  *row = BinaryRowOf<Op, bool>();
  return absl::OkStatus();
}

std::unique_ptr<Kernel> MakeComparison(BinaryRowChoice choose) {
  return MakeKernel([choose](KernelContext* context) -> absl::Status {
    return ComputeBroadcast(context, choose, tensorflow::DT_BOOL);
  });
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> MakeEquality(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(
      node, "T",
      {tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE, tensorflow::DT_INT8,
       tensorflow::DT_INT16, tensorflow::DT_INT32, tensorflow::DT_INT64,
       tensorflow::DT_UINT8, tensorflow::DT_UINT16, tensorflow::DT_UINT32,
       tensorflow::DT_UINT64, tensorflow::DT_COMPLEX64,
       tensorflow::DT_COMPLEX128, tensorflow::DT_BOOL, tensorflow::DT_STRING}));
  return MakeComparison(ChooseEqualityRow<Op>);
}

template <BinaryRowChoice kChoose>
absl::StatusOr<std::unique_ptr<Kernel>> MakeOrder(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  return MakeComparison(kChoose);
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> MakeLogical(
    const tensorflow::NodeDef&) {
  return MakeComparison(ChooseLogicalRow<Op>);
}

}  // namespace

void AddComparisonKernels(KernelCatalog* catalog) {
  catalog->Add("Equal", MakeEquality<EqualOp>);
  catalog->Add("NotEqual", MakeEquality<NotEqualOp>);
  catalog->Add("Less", MakeOrder<ChooseNumberRow<LessOp>>);
  catalog->Add("LessEqual", MakeOrder<ChooseNumberRow<LessEqualOp>>);
  catalog->Add("Greater", MakeOrder<ChooseSwappedRow<LessOp>>);
  catalog->Add("GreaterEqual", MakeOrder<ChooseSwappedRow<LessEqualOp>>);
  catalog->Add("LogicalAnd", MakeLogical<LogicalAndOp>);
  catalog->Add("LogicalOr", MakeLogical<LogicalOrOp>);
}

}  // namespace optfarm::runtime
