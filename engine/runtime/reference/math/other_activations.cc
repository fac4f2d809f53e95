// Activations that ONNX and TensorFlow Lite have and TensorFlow has not: each a
// function of one element and the node's attributes.

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <unsupported/Eigen/SpecialFunctions>

#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/math/binary_loop.h"
#include "engine/runtime/reference/math/vector_math.h"

namespace optfarm::runtime {
namespace {

constexpr int64_t kGrain = 4 * 1024;

// Whole vectors' worth of elements; a block apart from input and output lets
// loops over it become vector instructions.
constexpr int64_t kBlock = 64;

// 1 / (1 + e^-x), for loops that vectorize.
inline float Logistic(float x) { return 1.0f / (1.0f + VectorExp(-x)); }
inline double Logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// x * alpha bounded to [0, 1] after adding beta.
struct HardSigmoidOp {
  float alpha;
  float beta;
  template <typename T>
  void Run(const T* in, int64_t count, T* out) const {
    for (int64_t i = 0; i < count; ++i) {
      const T y = in[i] * static_cast<T>(alpha) + static_cast<T>(beta);
      out[i] = y < T(0) ? T(0) : (y > T(1) ? T(1) : y);
    }
  }
};

struct SwishOp {
  float alpha;
  template <typename T>
  void Run(const T* in, int64_t count, T* out) const {
    for (int64_t i = 0; i < count; ++i) {
      out[i] = in[i] * Logistic(in[i] * static_cast<T>(alpha));
    }
  }
};

// x * tanh(log(1 + e^x)); with n = e^x (e^x + 2) that is x * n / (n + 2), which
// holds up to where n overflows.
struct MishOp {
  template <typename T>
  void Run(const T* in, int64_t count, T* out) const {
    for (int64_t i = 0; i < count; ++i) {
      const T x = in[i];
      const T bounded = x < T(20) ? x : T(20);
      T e = T(0);
      if constexpr (std::is_same_v<T, float>) {
        e = VectorExp(bounded);
      } else {
        e = std::exp(bounded);
      }
      const T n = e * (e + T(2));
      out[i] = x > T(20) ? x : x * (n / (n + T(2)));
    }
  }
};

struct CeluOp {
  float alpha;
  template <typename T>
  void Run(const T* in, int64_t count, T* out) const {
    const T a = static_cast<T>(alpha);
    for (int64_t i = 0; i < count; ++i) {
      const T x = in[i];
      out[i] = x > T(0) ? x : a * std::expm1(x / a);
    }
  }
};

struct ThresholdedReluOp {
  float alpha;
  template <typename T>
  void Run(const T* in, int64_t count, T* out) const {
    for (int64_t i = 0; i < count; ++i) {
      out[i] = in[i] > static_cast<T>(alpha) ? in[i] : T(0);
    }
  }
};

// Numbers nearer to zero than lambd become zero, others move by bias.
struct ShrinkOp {
  float lambd;
  float bias;
  template <typename T>
  void Run(const T* in, int64_t count, T* out) const {
    const T bound = static_cast<T>(lambd);
    const T move = static_cast<T>(bias);
    for (int64_t i = 0; i < count; ++i) {
      const T x = in[i];
      out[i] = x < -bound ? x + move : (x > bound ? x - move : T(0));
    }
  }
};

// gamma * x above zero, gamma * alpha * (e^x - 1) below.
struct ScaledEluOp {
  float alpha;
  float gamma;
  template <typename T>
  void Run(const T* in, int64_t count, T* out) const {
    const T g = static_cast<T>(gamma);
    const T a = static_cast<T>(alpha) * g;
    for (int64_t i = 0; i < count; ++i) {
      const T x = in[i];
      out[i] = x > T(0) ? g * x : a * std::expm1(x);
    }
  }
};

// Hendrycks and Gimpel, "Gaussian Error Linear Units".
struct GeluOp {
  template <typename T>
  void Run(const T* in, int64_t count, T* out) const {
    const Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>> x(in, count);
    Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>> y(out, count);
    constexpr T kPerSqrt2 = T(0.70710678118654752440);
    y = x * T(0.5) * (T(1) + (x * kPerSqrt2).erf());
  }
};

// Their approximation: 0.5 (1 + tanh u) is the logistic function of 2 u.
struct GeluByTanhOp {
  template <typename T>
  void Run(const T* in, int64_t count, T* out) const {
    constexpr T kTwoSqrtTwoPerPi = T(1.59576912160573071176);
    for (int64_t i = 0; i < count; ++i) {
      const T x = in[i];
      const T u = kTwoSqrtTwoPerPi * (x + T(0.044715) * x * x * x);
      out[i] = x * Logistic(u);
    }
  }
};

// Runs `op` block by block through a buffer.
template <typename T, typename Op>
void RunBlocks(const Op& op, const T* in, int64_t count, T* out) {
  T from[kBlock];
  T to[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t size = std::min(kBlock, count - begin);
    std::copy_n(in + begin, size, from);
    op.Run(from, size, to);
    std::copy_n(to, size, out + begin);
  }
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> MakeFunction(
    const tensorflow::NodeDef& node, const Op& op) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  return MakeKernel([op](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& x = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out, context->ForwardOrAllocateOutput(
                                               0, 0, x.dtype(), x.shape()));
    return VisitFloat(x.dtype(), "features", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      const T* from = x.data<T>();
      T* to = out->data<T>();
      const int64_t count = x.num_elements();
      context->pool()->ParallelFor(
          (count + kBlock - 1) / kBlock, kGrain / kBlock,
          [&](int64_t first, int64_t last) {
            const int64_t begin = first * kBlock;
            const int64_t end = std::min(count, last * kBlock);
            RunBlocks(op, from + begin, end - begin, to + begin);
          });
      return absl::OkStatus();
    });
  });
}

// A member of Op that a node's attribute sets.
template <typename Op>
struct OpAttr {
  absl::string_view name;
  float Op::*member;
  float fallback;
};

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> MakeWithAttrs(
    const tensorflow::NodeDef& node, std::initializer_list<OpAttr<Op>> attrs) {
  Op op{};
  for (const OpAttr<Op>& attr : attrs) {
    OPTFARM_ASSIGN_OR_RETURN(op.*attr.member,
                             graph::GetFloatOr(node, attr.name, attr.fallback));
  }
  return MakeFunction(node, op);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeHardSigmoid(
    const tensorflow::NodeDef& node) {
  return MakeWithAttrs<HardSigmoidOp>(node,
                                      {{"alpha", &HardSigmoidOp::alpha, 0.2f},
                                       {"beta", &HardSigmoidOp::beta, 0.5f}});
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeShrink(
    const tensorflow::NodeDef& node) {
  return MakeWithAttrs<ShrinkOp>(node, {{"lambd", &ShrinkOp::lambd, 0.5f},
                                        {"bias", &ShrinkOp::bias, 0.0f}});
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeScaledElu(
    const tensorflow::NodeDef& node) {
  return MakeWithAttrs<ScaledEluOp>(node,
                                    {{"alpha", &ScaledEluOp::alpha, 1.0f},
                                     {"gamma", &ScaledEluOp::gamma, 1.0f}});
}

// Ops with one attribute, alpha.
template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> MakeWithAlpha(
    const tensorflow::NodeDef& node) {
  return MakeWithAttrs<Op>(node, {{"alpha", &Op::alpha, 1.0f}});
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeMish(
    const tensorflow::NodeDef& node) {
  return MakeFunction(node, MishOp());
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeGelu(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const bool approximate,
                           graph::GetBoolOr(node, "approximate", false));
  if (approximate) return MakeFunction(node, GeluByTanhOp());
  return MakeFunction(node, GeluOp());
}

// x where it is positive, alpha * x elsewhere.
struct PReluOp {
  template <typename T>
  static T Of(T x, T alpha) {
    T scaled;
    if constexpr (std::is_integral_v<T>) {
      // Integers wrap around.
      scaled = static_cast<T>(static_cast<uint64_t>(x) *
                              static_cast<uint64_t>(alpha));
    } else {
      scaled = x * alpha;
    }
    return x < T(0) ? scaled : x;
  }
};

// A row of floats. Signs of activations are hard to predict, so both results
// are computed, for eight elements at a time.
void RunPReluRow(const void* x, bool x_moves, const void* alpha,
                 bool alpha_moves, int64_t count, void* out) {
  const float* from = static_cast<const float*>(x);
  const float* slope = static_cast<const float*>(alpha);
  float* to = static_cast<float*>(out);
  using Lanes = float __attribute__((vector_size(32)));
  constexpr int64_t kLanes = sizeof(Lanes) / sizeof(float);
  Lanes slopes = *slope - Lanes{};
  int64_t i = 0;
  for (; x_moves && i + kLanes <= count; i += kLanes) {
    Lanes values;
    std::memcpy(&values, from + i, sizeof(values));
    if (alpha_moves) std::memcpy(&slopes, slope + i, sizeof(slopes));
    values = values < 0.0f ? values * slopes : values;
    std::memcpy(to + i, &values, sizeof(values));
  }
  RunBinaryRow<PReluOp, float, float>(x_moves ? from + i : from, x_moves,
                                      alpha_moves ? slope + i : slope,
                                      alpha_moves, count - i, to + i);
}

absl::Status ChoosePReluRow(DataType dtype, BinaryRow* row) {
  OPTFARM_RETURN_IF_ERROR(ChooseNumberRow<PReluOp>(dtype, row));
  if (dtype == tensorflow::DT_FLOAT) row->function = &RunPReluRow;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakePRelu(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    return ComputeBroadcast(context, ChoosePReluRow);
  });
}

}  // namespace

void AddOtherActivationKernels(KernelCatalog* catalog) {
  catalog->Add("Celu", MakeWithAlpha<CeluOp>);
  catalog->Add("Gelu", MakeGelu);
  catalog->Add("HardSigmoid", MakeHardSigmoid);
  catalog->Add("Mish", MakeMish);
  catalog->Add("PRelu", MakePRelu);
  catalog->Add("ScaledElu", MakeScaledElu);
  catalog->Add("Shrink", MakeShrink);
  catalog->Add("Swish", MakeWithAlpha<SwishOp>);
  catalog->Add("ThresholdedRelu", MakeWithAlpha<ThresholdedReluOp>);
}

}  // namespace optfarm::runtime
