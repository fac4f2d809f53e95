// Functions of two elements, with broadcasting: arithmetic, comparison, logic.
// One loop per function and element type runs over rows in which an input
// either moves with the output or stands still. Integers wrap around.

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/kernels/arguments.h"
#include "engine/runtime/kernels/broadcast.h"
#include "engine/runtime/kernels/dtype_switch.h"
#include "engine/runtime/kernels/families.h"

namespace optfarm::runtime {
namespace {

constexpr int64_t kGrain = 32 * 1024;

// Integer arithmetic modulo 2^n, on 64 bits; the cast back keeps the low bits.
template <typename T>
uint64_t Bits(T x) {
  return static_cast<uint64_t>(x);
}

struct AddOp {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(Bits(a) + Bits(b));
    else
      return a + b;
  }
};
struct SubOp {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(Bits(a) - Bits(b));
    else
      return a - b;
  }
};
struct MulOp {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(Bits(a) * Bits(b));
    else
      return a * b;
  }
};
struct SquaredDifferenceOp {
  template <typename T>
  static T Of(T a, T b) {
    const T d = SubOp::Of(a, b);
    return MulOp::Of(d, d);
  }
};

// The divisions. Integer divisors are known not to be 0; -1 is apart because
// the smallest integer has no opposite.
struct DivOp {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (std::is_signed_v<T> && std::is_integral_v<T>) {
      if (b == T(-1)) return SubOp::Of(T(0), a);
    }
    return static_cast<T>(a / b);
  }
};
struct FloorDivOp {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::floor(a / b);
    } else if constexpr (std::is_signed_v<T>) {
      if (b == T(-1)) return SubOp::Of(T(0), a);
      const T q = static_cast<T>(a / b);
      return static_cast<T>(q - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0));
    } else {
      return static_cast<T>(a / b);
    }
  }
};
struct TruncateModOp {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::fmod(a, b);
    } else {
      if constexpr (std::is_signed_v<T>) {
        if (b == T(-1)) return T(0);
      }
      return static_cast<T>(a % b);
    }
  }
};
struct FloorModOp {
  template <typename T>
  static T Of(T a, T b) {
    const T r = TruncateModOp::Of(a, b);
    return r != T(0) && (r < T(0)) != (b < T(0)) ? AddOp::Of(r, b) : r;
  }
};
struct DivNoNanOp {
  template <typename T>
  static T Of(T a, T b) {
    return b == T(0) ? T(0) : DivOp::Of(a, b);
  }
};
struct MulNoNanOp {
  template <typename T>
  static T Of(T a, T b) {
    return b == T(0) ? T(0) : MulOp::Of(a, b);
  }
};

// Integer exponents are known not to be negative.
struct PowOp {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::pow(a, b);
    } else {
      T result = 1;
      for (uint64_t e = Bits(b); e != 0; e >>= 1) {
        if (e & 1) result = MulOp::Of(result, a);
        a = MulOp::Of(a, a);
      }
      return result;
    }
  }
};
struct Atan2Op {
  template <typename T>
  static T Of(T a, T b) {
    return std::atan2(a, b);
  }
};
struct MaximumOp {
  template <typename T>
  static T Of(T a, T b) {
    return a < b ? b : a;
  }
};
struct MinimumOp {
  template <typename T>
  static T Of(T a, T b) {
    return b < a ? b : a;
  }
};

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

template <typename Op, typename T, typename R>
void RunRow(const T* a, bool a_moves, const T* b, bool b_moves, int64_t count,
            R* out) {
  if (a_moves && b_moves) {
    for (int64_t i = 0; i < count; ++i) out[i] = Op::Of(a[i], b[i]);
  } else if (a_moves) {
    const T fixed = *b;
    for (int64_t i = 0; i < count; ++i) out[i] = Op::Of(a[i], fixed);
  } else {
    const T fixed = *a;
    for (int64_t i = 0; i < count; ++i) out[i] = Op::Of(fixed, b[i]);
  }
}

template <typename Op, typename T, typename R>
void RunAll(const T* a, const T* b, const BroadcastPlan& plan, ThreadPool* pool,
            R* out) {
  if (plan.output.num_elements() == 0) return;
  if (plan.rows() == 1) {
    // One long row is cut into pieces.
    pool->ParallelFor(plan.row(), kGrain, [&](int64_t begin, int64_t end) {
      RunRow<Op>(plan.a_moves() ? a + begin : a, plan.a_moves(),
                 plan.b_moves() ? b + begin : b, plan.b_moves(), end - begin,
                 out + begin);
    });
    return;
  }
  pool->ParallelFor(
      plan.rows(), 1 + kGrain / plan.row(), [&](int64_t begin, int64_t end) {
        plan.ForEachRow(begin, end,
                        [&](int64_t in_a, int64_t in_b, int64_t at) {
                          RunRow<Op>(a + in_a, plan.a_moves(), b + in_b,
                                     plan.b_moves(), plan.row(), out + at);
                        });
      });
}

// The inputs, checked, and how they broadcast.
absl::StatusOr<BroadcastPlan> PlanInputs(const KernelContext& context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(context, 2));
  OPTFARM_RETURN_IF_ERROR(RequireSameDtype(context.input(0), context.input(1)));
  return PlanBroadcast(context.input(0).shape(), context.input(1).shape());
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
      x.num_elements(), kGrain, [&](int64_t begin, int64_t end) {
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
