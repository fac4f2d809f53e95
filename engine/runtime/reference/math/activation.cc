// What follows a layer: bias, the rectifiers, and softmax.

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/spatial_attrs.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

constexpr int64_t kGrain = 32 * 1024;

template <typename T>
T Plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

// Adds bias[c] to each run of `inner` values of channel c.
template <typename T>
void AddBias(const T* in, const T* bias, int64_t rows, int64_t channels,
             int64_t inner, ThreadPool* pool, T* out) {
  pool->ParallelFor(rows, 1 + kGrain / (channels * inner),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t r = begin; r < end; ++r) {
                        const int64_t at = r * channels * inner;
                        if (inner == 1) {
                          for (int64_t c = 0; c < channels; ++c) {
                            out[at + c] = Plus(in[at + c], bias[c]);
                          }
                          continue;
                        }
                        for (int64_t c = 0; c < channels; ++c) {
                          const int64_t from = at + c * inner;
                          for (int64_t k = from; k < from + inner; ++k) {
                            out[k] = Plus(in[k], bias[c]);
                          }
                        }
                      }
                    });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeBiasAdd(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(const bool is_nchw, graph::IsNchw(node));
  return MakeKernel([is_nchw](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& value = context->input(0);
    const Tensor& bias = context->input(1);
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(value, bias));
    OPTFARM_RETURN_IF_ERROR(RequireRank(bias, "bias", 1));
    const int axis = is_nchw ? 1 : value.rank() - 1;
    if (value.rank() < 2 || value.dim(axis) != bias.dim(0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("value of shape ", value.shape().ToString(),
                       " cannot take a bias of shape ", bias.shape().ToString(),
                       " along dimension ", axis));
    }
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out,
        context->ForwardOrAllocateOutput(0, 0, value.dtype(), value.shape()));
    if (value.num_elements() == 0) return absl::OkStatus();
    const int64_t rows = DimProduct(value.shape(), 0, axis);
    const int64_t inner = DimProduct(value.shape(), axis + 1, value.rank());
    return VisitNumber(value.dtype(), "value", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      AddBias(value.data<T>(), bias.data<T>(), rows, bias.dim(0), inner,
              context->pool(), out->data<T>());
      return absl::OkStatus();
    });
  });
}

struct ReluOp {
  template <typename T>
  static T Of(T x) {
    // Written so that NaN stays NaN, as in TensorFlow.
    return x < T(0) ? T(0) : x;
  }
};
struct Relu6Op {
  template <typename T>
  static T Of(T x) {
    return x < T(0) ? T(0) : (x > T(6) ? T(6) : x);
  }
};

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> MakeRectifier(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& features = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->ForwardOrAllocateOutput(0, 0, features.dtype(),
                                                       features.shape()));
    return VisitNumber(
        features.dtype(), "features", [&](auto tag) -> absl::Status {
          using T = typename decltype(tag)::type;
          const T* from = features.data<T>();
          T* to = out->data<T>();
          context->pool()->ParallelFor(features.num_elements(), kGrain,
                                       [&](int64_t begin, int64_t end) {
                                         for (int64_t i = begin; i < end; ++i)
                                           to[i] = Op::Of(from[i]);
                                       });
          return absl::OkStatus();
        });
  });
}

// exp(x - max) / sum over each row; in TensorFlow's order of operations.
template <typename T>
void SoftmaxRows(const T* in, int64_t columns, int64_t begin, int64_t end,
                 bool is_log, T* out) {
  using Row = Eigen::Array<T, 1, Eigen::Dynamic>;
  for (int64_t r = begin; r < end; ++r) {
    const Eigen::Map<const Row> x(in + r * columns, columns);
    Eigen::Map<Row> y(out + r * columns, columns);
    const T max = x.maxCoeff();
    y = x - max;
    if (is_log) {
      y -= std::log(y.exp().sum());
    } else {
      y = y.exp();
      y /= y.sum();
    }
  }
}

template <bool kIsLog>
absl::StatusOr<std::unique_ptr<Kernel>> MakeSoftmax(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(
      node, "T", {tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE}));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& logits = context->input(0);
    if (logits.rank() < 1) {
      return absl::InvalidArgumentError(
          "'logits' must have rank 1 or more, but is a scalar");
    }
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out,
        context->ForwardOrAllocateOutput(0, 0, logits.dtype(), logits.shape()));
    if (logits.num_elements() == 0) return absl::OkStatus();
    const int64_t columns = logits.dim(logits.rank() - 1);
    const auto run = [&](const auto* from, auto* to) {
      context->pool()->ParallelFor(
          logits.num_elements() / columns, 1 + 4096 / columns,
          [&](int64_t begin, int64_t end) {
            SoftmaxRows(from, columns, begin, end, kIsLog, to);
          });
      return absl::OkStatus();
    };
    switch (logits.dtype()) {
      case tensorflow::DT_FLOAT:
        return run(logits.data<float>(), out->data<float>());
      case tensorflow::DT_DOUBLE:
        return run(logits.data<double>(), out->data<double>());
      default:
        return UnsupportedDtype("logits", logits.dtype());
    }
  });
}

}  // namespace

void AddActivationKernels(KernelCatalog* catalog) {
  catalog->Add("BiasAdd", MakeBiasAdd);
  catalog->Add("BiasAddV1", MakeBiasAdd);
  catalog->Add("Relu", MakeRectifier<ReluOp>);
  catalog->Add("Relu6", MakeRectifier<Relu6Op>);
  catalog->Add("Softmax", MakeSoftmax<false>);
  catalog->Add("LogSoftmax", MakeSoftmax<true>);
}

}  // namespace optfarm::runtime
