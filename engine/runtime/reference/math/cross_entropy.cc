// SoftmaxCrossEntropyWithLogits and SparseSoftmaxCrossEntropyWithLogits: the
// loss of each row and its gradient.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/broadcast.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

// Where row `r` of a matrix that broadcasts over rows and columns lies.
struct BroadcastMatrix {
  int64_t row_step = 0;
  int64_t column_step = 0;
  explicit BroadcastMatrix(const Tensor& tensor)
      : row_step(tensor.dim(0) == 1 ? 0 : tensor.dim(1)),
        column_step(tensor.dim(1) == 1 ? 0 : 1) {}
  int64_t At(int64_t r, int64_t c) const {
    return r * row_step + c * column_step;
  }
};

// Subtracts the row's maximum and returns the logarithm of the sum of
// exponentials of what is left.
template <typename T>
T ShiftRow(std::vector<T>* row) {
  const T largest = *std::max_element(row->begin(), row->end());
  T sum = T(0);
  for (T& x : *row) {
    x -= largest;
    sum += std::exp(x);
  }
  return std::log(sum);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeDense(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 2));
    const Tensor& logits = context->input(0);
    const Tensor& labels = context->input(1);
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(logits, labels));
    OPTFARM_RETURN_IF_ERROR(RequireRank(logits, "features", 2));
    OPTFARM_RETURN_IF_ERROR(RequireRank(labels, "labels", 2));
    OPTFARM_ASSIGN_OR_RETURN(const BroadcastPlan plan,
                             PlanBroadcast(logits.shape(), labels.shape()));
    const Shape& shape = plan.output;
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * loss,
        context->AllocateOutput(0, logits.dtype(), Shape{shape.dim(0)}));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * gradient,
                             context->AllocateOutput(1, logits.dtype(), shape));
    const BroadcastMatrix x(logits);
    const BroadcastMatrix y(labels);
    return VisitFloat(logits.dtype(), "features", [&](auto t) -> absl::Status {
      using T = typename decltype(t)::type;
      const int64_t classes = shape.dim(1);
      std::vector<T> row(classes);
      for (int64_t r = 0; r < shape.dim(0); ++r) {
        loss->data<T>()[r] = T(0);
        if (classes == 0) continue;
        for (int64_t c = 0; c < classes; ++c) {
          row[c] = logits.data<T>()[x.At(r, c)];
        }
        const T log_sum = ShiftRow(&row);
        T sum = T(0);
        for (int64_t c = 0; c < classes; ++c) {
          const T label = labels.data<T>()[y.At(r, c)];
          sum += label * (log_sum - row[c]);
          gradient->data<T>()[r * classes + c] =
              std::exp(row[c] - log_sum) - label;
        }
        loss->data<T>()[r] = sum;
      }
      return absl::OkStatus();
    });
  });
}

// A label outside of the classes is refused, as TensorFlow does on a CPU.
absl::StatusOr<std::unique_ptr<Kernel>> MakeSparse(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "Tlabels", OPTFARM_INDEX_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 2));
    const Tensor& logits = context->input(0);
    const Tensor& labels = context->input(1);
    OPTFARM_RETURN_IF_ERROR(RequireRank(logits, "features", 2));
    OPTFARM_RETURN_IF_ERROR(
        RequireShape(labels, "labels", Shape{logits.dim(0)}));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> classes_of,
                             labels.AsInt64s());
    const int64_t classes = logits.dim(1);
    for (int64_t label : classes_of) {
      if (label < 0 || label >= classes) {
        return absl::InvalidArgumentError(
            absl::StrCat("label ", label, " is not within [0, ", classes, ")"));
      }
    }
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * loss,
        context->AllocateOutput(0, logits.dtype(), labels.shape()));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * gradient,
        context->AllocateOutput(1, logits.dtype(), logits.shape()));
    return VisitFloat(logits.dtype(), "features", [&](auto t) -> absl::Status {
      using T = typename decltype(t)::type;
      std::vector<T> row(classes);
      for (size_t r = 0; r < classes_of.size(); ++r) {
        std::copy_n(logits.data<T>() + r * classes, classes, row.begin());
        const T log_sum = ShiftRow(&row);
        T* to = gradient->data<T>() + r * classes;
        for (int64_t c = 0; c < classes; ++c)
          to[c] = std::exp(row[c] - log_sum);
        to[classes_of[r]] -= T(1);
        loss->data<T>()[r] = log_sum - row[classes_of[r]];
      }
      return absl::OkStatus();
    });
  });
}

}  // namespace

void AddCrossEntropyKernels(KernelCatalog* catalog) {
  catalog->Add("SoftmaxCrossEntropyWithLogits", MakeDense);
  catalog->Add("SparseSoftmaxCrossEntropyWithLogits", MakeSparse);
}

}  // namespace optfarm::runtime
