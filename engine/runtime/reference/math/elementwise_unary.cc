// Functions of one element: arithmetic, rounding, exponentials, trigonometry,
// and the activations that are such functions. Exponentials go through Eigen,
// as TensorFlow's do.

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <complex>
#include <string>
#include <type_traits>

#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/math/vector_math.h"
#include "engine/runtime/reference/quantized/step_hard_swish.h"

namespace optfarm::runtime {
namespace {

constexpr int64_t kCheapGrain = 32 * 1024;
constexpr int64_t kCostlyGrain = 4 * 1024;

// Ops for floating point alone. Each is one expression over an Eigen array.
#define OPTFARM_ARRAY_OP(name, expression)                                     \
  struct name {                                                                \
    template <typename T>                                                      \
    static void Run(const T* in, int64_t count, T* out) {                      \
      const Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>> x(in, count); \
      Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>> y(out, count);            \
      y = expression;                                                          \
    }                                                                          \
  }
OPTFARM_ARRAY_OP(ExpOp, x.exp());
OPTFARM_ARRAY_OP(LogOp, x.log());
OPTFARM_ARRAY_OP(SqrtOp, x.sqrt());
OPTFARM_ARRAY_OP(TanhOp, x.tanh());
OPTFARM_ARRAY_OP(SinOp, x.sin());
OPTFARM_ARRAY_OP(CosOp, x.cos());
OPTFARM_ARRAY_OP(FloorOp, x.floor());
OPTFARM_ARRAY_OP(CeilOp, x.ceil());
OPTFARM_ARRAY_OP(ReciprocalOp, x.inverse());

// Ops whose last bit is TensorFlow 1.4's for float: QuantizedMul carries
// Sigmoid's on, and Rsqrt is in the batch norms that fold_constants folds.
#define OPTFARM_EXACT_OP(name, function, expression_for_double)     \
  OPTFARM_ARRAY_OP(Double##name, expression_for_double);            \
  struct name {                                                     \
    static void Run(const float* in, int64_t count, float* out) {   \
      function(in, count, out);                                     \
    }                                                               \
    static void Run(const double* in, int64_t count, double* out) { \
      Double##name::Run(in, count, out);                            \
    }                                                               \
  }
OPTFARM_EXACT_OP(SigmoidOp, SigmoidOfArray, x.logistic());
OPTFARM_EXACT_OP(RsqrtOp, RsqrtOfArray, x.sqrt().inverse());
#undef OPTFARM_EXACT_OP
#undef OPTFARM_ARRAY_OP

// Ops for floating point alone, one element at a time.
#define OPTFARM_SCALAR_OP(name, expression)               \
  struct name {                                           \
    template <typename T>                                 \
    static void Run(const T* in, int64_t count, T* out) { \
      for (int64_t i = 0; i < count; ++i) {               \
        const T x = in[i];                                \
        out[i] = expression;                              \
      }                                                   \
    }                                                     \
  }
OPTFARM_SCALAR_OP(Log1pOp, std::log1p(x));
OPTFARM_SCALAR_OP(Expm1Op, std::expm1(x));
OPTFARM_SCALAR_OP(TanOp, std::tan(x));
OPTFARM_SCALAR_OP(AsinOp, std::asin(x));
OPTFARM_SCALAR_OP(AcosOp, std::acos(x));
OPTFARM_SCALAR_OP(AtanOp, std::atan(x));
OPTFARM_SCALAR_OP(SinhOp, std::sinh(x));
OPTFARM_SCALAR_OP(CoshOp, std::cosh(x));
OPTFARM_SCALAR_OP(AsinhOp, std::asinh(x));
OPTFARM_SCALAR_OP(AcoshOp, std::acosh(x));
OPTFARM_SCALAR_OP(AtanhOp, std::atanh(x));
OPTFARM_SCALAR_OP(ErfOp, std::erf(x));
OPTFARM_SCALAR_OP(ErfcOp, std::erfc(x));
OPTFARM_SCALAR_OP(LgammaOp, std::lgamma(x));
OPTFARM_SCALAR_OP(SoftplusOp,
                  std::max(x, T(0)) + std::log1p(std::exp(-std::abs(x))));
OPTFARM_SCALAR_OP(SoftsignOp, x / (T(1) + std::abs(x)));
OPTFARM_SCALAR_OP(EluOp, x < T(0) ? std::expm1(x) : x);
// In TensorFlow Lite's order of operations.
OPTFARM_SCALAR_OP(HardSwishOp,
                  x* std::min(std::max(x + T(3), T(0)), T(6)) / T(6));
// Scale and alpha of Klambauer et al., "Self-Normalizing Neural Networks".
OPTFARM_SCALAR_OP(SeluOp, T(1.0507009873554804934193349852946) *
                              (x < T(0) ? T(1.6732632423543772848170429916717) *
                                              std::expm1(x)
                                        : x));
#undef OPTFARM_SCALAR_OP

// Ops for all numbers.
#define OPTFARM_NUMBER_OP(name, body)                         \
  struct name {                                               \
    template <typename T>                                     \
    static T Of(T x) {                                        \
      body                                                    \
    }                                                         \
    template <typename T>                                     \
    static void Run(const T* in, int64_t count, T* out) {     \
      for (int64_t i = 0; i < count; ++i) out[i] = Of(in[i]); \
    }                                                         \
  }

// Integers wrap around instead of overflowing.
template <typename T>
T Negated(T x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x));
  } else {
    return -x;
  }
}

OPTFARM_NUMBER_OP(NegOp, return Negated(x););
OPTFARM_NUMBER_OP(AbsOp, {
  if constexpr (std::is_floating_point_v<T>) return std::abs(x);
  if constexpr (std::is_unsigned_v<T>) return x;
  return x < T(0) ? Negated(x) : x;
});
OPTFARM_NUMBER_OP(SquareOp, {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(x));
  } else {
    return x * x;
  }
});
OPTFARM_NUMBER_OP(SignOp, {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(x)) return x;
  }
  return static_cast<T>((x > T(0)) - (x < T(0)));
});
// Halves go to the even neighbour.
OPTFARM_NUMBER_OP(RoundOp, {
  if constexpr (std::is_floating_point_v<T>) return std::nearbyint(x);
  return x;
});
#undef OPTFARM_NUMBER_OP

// A function of one element, over `count` of them.
struct UnaryFunction {
  void (*run)(const void* in, int64_t count, void* out) = nullptr;
  // UNITS: bytes of an element.
  int64_t bytes = 0;
};

// Sets `function` to what works on elements of `dtype`.
// ERRORS: Unimplemented for dtypes that the op does not take.
using UnaryChoice = absl::Status (*)(DataType dtype, UnaryFunction* function);

template <typename Op, typename T>
UnaryFunction UnaryFunctionOf() {
  return {[](const void* in, int64_t count, void* out) {
            Op::Run(static_cast<const T*>(in), count, static_cast<T*>(out));
          },
          sizeof(T)};
}

template <typename Op>
absl::Status ChooseFloat(DataType dtype, UnaryFunction* function) {
  return VisitFloat(dtype, "x", [&](auto tag) {
    *function = UnaryFunctionOf<Op, typename decltype(tag)::type>();
    return absl::OkStatus();
  });
}
template <typename Op>
absl::Status ChooseNumber(DataType dtype, UnaryFunction* function) {
  return VisitNumber(dtype, "x", [&](auto tag) {
    *function = UnaryFunctionOf<Op, typename decltype(tag)::type>();
    return absl::OkStatus();
  });
}
template <typename Op>
absl::Status ChooseComplex(DataType dtype, UnaryFunction* function) {
  return VisitComplex(dtype, "x", [&](auto tag) {
    *function = UnaryFunctionOf<Op, typename decltype(tag)::type>();
    return absl::OkStatus();
  });
}

void RunParallel(const UnaryFunction& function, const Tensor& in, int64_t grain,
                 ThreadPool* pool, Tensor* out) {
  // Blocks stay whole: what does not fill a vector is computed with other
  // instructions, and the last bit must not depend on the number of threads.
  constexpr int64_t kBlock = 16;
  const int64_t count = in.num_elements();
  const char* const from = static_cast<const char*>(in.raw());
  char* const to = static_cast<char*>(out->raw());
  pool->ParallelFor((count + kBlock - 1) / kBlock, grain / kBlock,
                    [&](int64_t first, int64_t last) {
                      const int64_t begin = first * kBlock;
                      const int64_t end = std::min(count, last * kBlock);
                      function.run(from + begin * function.bytes, end - begin,
                                   to + begin * function.bytes);
                    });
}

std::unique_ptr<Kernel> MakeUnary(UnaryChoice choose, int64_t grain) {
  return MakeKernel([choose, grain](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& x = context->input(0);
    UnaryFunction function;
    OPTFARM_RETURN_IF_ERROR(choose(x.dtype(), &function));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out, context->ForwardOrAllocateOutput(
                                               0, 0, x.dtype(), x.shape()));
    RunParallel(function, x, grain, context->pool(), out);
    return absl::OkStatus();
  });
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> MakeFloatOp(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(
      node, "T", {tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE}));
  return MakeUnary(ChooseFloat<Op>, kCostlyGrain);
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> MakeNumberOp(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  return MakeUnary(ChooseNumber<Op>, kCheapGrain);
}

// The ops that complex numbers have too, element by element.
template <typename Op, KernelFactory kForNumbers>
absl::StatusOr<std::unique_ptr<Kernel>> MakeFieldOp(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype,
                           graph::GetTypeOr(node, "T", tensorflow::DT_FLOAT));
  if (dtype != tensorflow::DT_COMPLEX64 && dtype != tensorflow::DT_COMPLEX128) {
    return kForNumbers(node);
  }
  return MakeUnary(ChooseComplex<Op>, kCostlyGrain);
}

#define OPTFARM_COMPLEX_OP(name, expression)              \
  struct name {                                           \
    template <typename T>                                 \
    static void Run(const T* in, int64_t count, T* out) { \
      for (int64_t i = 0; i < count; ++i) {               \
        const T x = in[i];                                \
        out[i] = expression;                              \
      }                                                   \
    }                                                     \
  }
OPTFARM_COMPLEX_OP(ComplexNegOp, -x);
OPTFARM_COMPLEX_OP(ComplexSquareOp, x* x);
OPTFARM_COMPLEX_OP(ComplexInverseOp, T(1) / x);
OPTFARM_COMPLEX_OP(ComplexExpOp, std::exp(x));
OPTFARM_COMPLEX_OP(ComplexLogOp, std::log(x));
OPTFARM_COMPLEX_OP(ComplexSqrtOp, std::sqrt(x));
OPTFARM_COMPLEX_OP(ComplexRsqrtOp, T(1) / std::sqrt(x));
OPTFARM_COMPLEX_OP(ComplexTanhOp, std::tanh(x));
OPTFARM_COMPLEX_OP(ComplexSigmoidOp, T(1) / (T(1) + std::exp(-x)));
OPTFARM_COMPLEX_OP(ComplexSinOp, std::sin(x));
OPTFARM_COMPLEX_OP(ComplexCosOp, std::cos(x));
#undef OPTFARM_COMPLEX_OP

// A float function of one element and the node's attribute alpha.
template <typename Function>
absl::StatusOr<std::unique_ptr<Kernel>> MakeFloatFunction(Function function) {
  return MakeKernel([function](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& x = context->input(0);
    OPTFARM_RETURN_IF_ERROR(RequireDtype(x, "features", tensorflow::DT_FLOAT));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out, context->ForwardOrAllocateOutput(
                                               0, 0, x.dtype(), x.shape()));
    const float* from = x.data<float>();
    float* to = out->data<float>();
    context->pool()->ParallelFor(x.num_elements(), kCheapGrain,
                                 [&](int64_t begin, int64_t end) {
                                   for (int64_t i = begin; i < end; ++i)
                                     to[i] = function(from[i]);
                                 });
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeLeakyRelu(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", {tensorflow::DT_FLOAT}));
  OPTFARM_ASSIGN_OR_RETURN(const float alpha,
                           graph::GetFloatOr(node, "alpha", 0.2f));
  return MakeFloatFunction(
      [alpha](float x) { return x > 0.0f ? x : x * alpha; });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeHardSwish(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const float input_scale,
                           graph::GetFloatOr(node, "input_scale", 0));
  OPTFARM_ASSIGN_OR_RETURN(const float output_scale,
                           graph::GetFloatOr(node, "output_scale", 0));
  if (input_scale == 0 && output_scale == 0) {
    return MakeFloatOp<HardSwishOp>(node);
  }
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", {tensorflow::DT_FLOAT}));
  return MakeStepHardSwish(input_scale, output_scale);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeLogicalNot(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& x = context->input(0);
    OPTFARM_RETURN_IF_ERROR(RequireDtype(x, "x", tensorflow::DT_BOOL));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out, context->ForwardOrAllocateOutput(
                                               0, 0, x.dtype(), x.shape()));
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      out->data<bool>()[i] = !x.data<bool>()[i];
    }
    return absl::OkStatus();
  });
}

struct IsNanOp {
  template <typename T>
  static bool Of(T x) {
    return std::isnan(x);
  }
};
struct IsInfOp {
  template <typename T>
  static bool Of(T x) {
    return std::isinf(x);
  }
};
struct IsFiniteOp {
  template <typename T>
  static bool Of(T x) {
    return std::isfinite(x);
  }
};

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> MakeClassifier(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(
      node, "T", {tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE}));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& x = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out,
        context->AllocateOutput(0, tensorflow::DT_BOOL, x.shape()));
    const auto run = [&](const auto* from) {
      for (int64_t i = 0; i < x.num_elements(); ++i) {
        out->data<bool>()[i] = Op::Of(from[i]);
      }
      return absl::OkStatus();
    };
    if (x.dtype() == tensorflow::DT_FLOAT) return run(x.data<float>());
    if (x.dtype() == tensorflow::DT_DOUBLE) return run(x.data<double>());
    return UnsupportedDtype("x", x.dtype());
  });
}

}  // namespace

void AddUnaryKernels(KernelCatalog* catalog) {
  catalog->Add("Abs", MakeNumberOp<AbsOp>);
  catalog->Add("Neg", MakeFieldOp<ComplexNegOp, MakeNumberOp<NegOp>>);
  catalog->Add("Square", MakeFieldOp<ComplexSquareOp, MakeNumberOp<SquareOp>>);
  catalog->Add("Sign", MakeNumberOp<SignOp>);
  catalog->Add("Round", MakeNumberOp<RoundOp>);
  catalog->Add("Rint", MakeFloatOp<RoundOp>);
  catalog->Add("Exp", MakeFieldOp<ComplexExpOp, MakeFloatOp<ExpOp>>);
  catalog->Add("Expm1", MakeFloatOp<Expm1Op>);
  catalog->Add("Log", MakeFieldOp<ComplexLogOp, MakeFloatOp<LogOp>>);
  catalog->Add("Log1p", MakeFloatOp<Log1pOp>);
  catalog->Add("Sqrt", MakeFieldOp<ComplexSqrtOp, MakeFloatOp<SqrtOp>>);
  catalog->Add("Rsqrt", MakeFieldOp<ComplexRsqrtOp, MakeFloatOp<RsqrtOp>>);
  catalog->Add("Reciprocal",
               MakeFieldOp<ComplexInverseOp, MakeFloatOp<ReciprocalOp>>);
  catalog->Add("Inv", MakeFieldOp<ComplexInverseOp, MakeFloatOp<ReciprocalOp>>);
  catalog->Add("Floor", MakeFloatOp<FloorOp>);
  catalog->Add("Ceil", MakeFloatOp<CeilOp>);
  catalog->Add("Sigmoid",
               MakeFieldOp<ComplexSigmoidOp, MakeFloatOp<SigmoidOp>>);
  catalog->Add("Tanh", MakeFieldOp<ComplexTanhOp, MakeFloatOp<TanhOp>>);
  catalog->Add("Sin", MakeFieldOp<ComplexSinOp, MakeFloatOp<SinOp>>);
  catalog->Add("Cos", MakeFieldOp<ComplexCosOp, MakeFloatOp<CosOp>>);
  catalog->Add("Tan", MakeFloatOp<TanOp>);
  catalog->Add("Asin", MakeFloatOp<AsinOp>);
  catalog->Add("Acos", MakeFloatOp<AcosOp>);
  catalog->Add("Atan", MakeFloatOp<AtanOp>);
  catalog->Add("Sinh", MakeFloatOp<SinhOp>);
  catalog->Add("Cosh", MakeFloatOp<CoshOp>);
  catalog->Add("Asinh", MakeFloatOp<AsinhOp>);
  catalog->Add("Acosh", MakeFloatOp<AcoshOp>);
  catalog->Add("Atanh", MakeFloatOp<AtanhOp>);
  catalog->Add("Erf", MakeFloatOp<ErfOp>);
  catalog->Add("Erfc", MakeFloatOp<ErfcOp>);
  catalog->Add("Lgamma", MakeFloatOp<LgammaOp>);
  catalog->Add("Softplus", MakeFloatOp<SoftplusOp>);
  catalog->Add("Softsign", MakeFloatOp<SoftsignOp>);
  catalog->Add("Elu", MakeFloatOp<EluOp>);
  catalog->Add("Selu", MakeFloatOp<SeluOp>);
  catalog->Add("HardSwish", MakeHardSwish);
  catalog->Add("LeakyRelu", MakeLeakyRelu);
  catalog->Add("LogicalNot", MakeLogicalNot);
  catalog->Add("IsNan", MakeClassifier<IsNanOp>);
  catalog->Add("IsInf", MakeClassifier<IsInfOp>);
  catalog->Add("IsFinite", MakeClassifier<IsFiniteOp>);
}

}  // namespace optfarm::runtime
