// Sum, Mean, Prod, Max, Min, EuclideanNorm, All, Any over any set of axes.
// Neighbouring axes that are all kept or all reduced are merged; then the input
// is walked once in memory order, row by row, into the result.

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/scratch.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

// The input in merged dimensions: its sizes, and how far the result moves per
// step (0 along reduced dimensions).
struct ReductionPlan {
  Shape output;
  absl::InlinedVector<int64_t, 4> sizes;
  absl::InlinedVector<int64_t, 4> out_steps;
  // Input elements per output element.
  int64_t count = 1;
};

absl::StatusOr<std::vector<bool>> ReadAxes(const Tensor& axes, int rank) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> values,
                           ReadIntegers(axes, "reduction_indices"));
  std::vector<bool> is_reduced(rank, false);
  for (int64_t value : values) {
    OPTFARM_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(value, rank));
    is_reduced[axis] = true;
  }
  return is_reduced;
}

absl::StatusOr<ReductionPlan> Plan(const Tensor& input, const Tensor& axes,
                                   bool keep_dims) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<bool> is_reduced,
                           ReadAxes(axes, input.rank()));
  ReductionPlan plan;
  std::vector<int64_t> dims;
  for (int i = 0; i < input.rank(); ++i) {
    if (!is_reduced[i]) dims.push_back(input.dim(i));
    if (is_reduced[i] && keep_dims) dims.push_back(1);
  }
  OPTFARM_ASSIGN_OR_RETURN(plan.output, Shape::FromDims(dims));
  int64_t stride = 1;
  for (int i = input.rank() - 1; i >= 0; --i) {
    const int64_t size = input.dim(i);
    if (is_reduced[i]) plan.count *= size;
    if (size == 1) continue;
    if (!plan.sizes.empty() && (plan.out_steps.back() == 0) == is_reduced[i]) {
      plan.sizes.back() *= size;
    } else {
      plan.sizes.push_back(size);
      plan.out_steps.push_back(is_reduced[i] ? 0 : stride);
    }
    if (!is_reduced[i]) stride *= size;
  }
  if (plan.sizes.empty()) {
    plan.sizes.push_back(1);
    plan.out_steps.push_back(1);
  }
  std::reverse(plan.sizes.begin(), plan.sizes.end());
  std::reverse(plan.out_steps.begin(), plan.out_steps.end());
  return plan;
}

struct SumOp {
  template <typename T>
  static T Start() {
    return T(0);
  }
  template <typename T>
  static T Join(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<uint64_t>(a) +
                            static_cast<uint64_t>(b));
    } else {
      return a + b;
    }
  }
};
struct ProdOp {
  template <typename T>
  static T Start() {
    return T(1);
  }
  template <typename T>
  static T Join(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<uint64_t>(a) *
                            static_cast<uint64_t>(b));
    } else {
      return a * b;
    }
  }
};
struct MaxOp {
  template <typename T>
  static T Start() {
    if constexpr (std::is_floating_point_v<T>) {
      return -std::numeric_limits<T>::infinity();
    }
    return std::numeric_limits<T>::lowest();
  }
  template <typename T>
  static T Join(T a, T b) {
    return a < b ? b : a;
  }
};
struct MinOp {
  template <typename T>
  static T Start() {
    if constexpr (std::is_floating_point_v<T>) {
      return std::numeric_limits<T>::infinity();
    }
    return std::numeric_limits<T>::max();
  }
  template <typename T>
  static T Join(T a, T b) {
    return b < a ? b : a;
  }
};
struct AllOp {
  template <typename T>
  static T Start() {
    return true;
  }
  template <typename T>
  static T Join(T a, T b) {
    return a && b;
  }
};
struct AnyOp {
  template <typename T>
  static T Start() {
    return false;
  }
  template <typename T>
  static T Join(T a, T b) {
    return a || b;
  }
};

// A row into one value: eight running results, so that long float sums lose
// less and vectorize.
template <typename Op, typename T>
T JoinRow(const T* in, int64_t count) {
  constexpr int kLanes = 8;
  if (count < kLanes) {
    T result = Op::template Start<T>();
    for (int64_t i = 0; i < count; ++i) result = Op::Join(result, in[i]);
    return result;
  }
  T lanes[kLanes];
  std::fill_n(lanes, kLanes, Op::template Start<T>());
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) lanes[k] = Op::Join(lanes[k], in[i + k]);
  }
  for (; i < count; ++i) lanes[0] = Op::Join(lanes[0], in[i]);
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int k = 0; k < width; ++k) {
      lanes[k] = Op::Join(lanes[k], lanes[k + width]);
    }
  }
  return lanes[0];
}

// Where the rows of the merged input go, one after the other. Out of line: it
// would be there once for each op and type.
class RowWalk {
 public:
  RowWalk(const ReductionPlan& plan, int64_t row);
  int64_t at() const { return at_; }
  void MoveOn();

 private:
  const ReductionPlan& plan_;
  // Of each dimension but the last.
  absl::InlinedVector<int64_t, 4> index_;
  int64_t at_ = 0;
};

__attribute__((noinline))
RowWalk::RowWalk(const ReductionPlan& plan, int64_t row)
    : plan_(plan), index_(plan.sizes.size() - 1) {
  for (int i = static_cast<int>(index_.size()) - 1; i >= 0; --i) {
    index_[i] = row % plan.sizes[i];
    at_ += index_[i] * plan.out_steps[i];
    row /= plan.sizes[i];
  }
}

__attribute__((noinline)) void RowWalk::MoveOn() {
  for (int i = static_cast<int>(index_.size()) - 1; i >= 0; --i) {
    at_ += plan_.out_steps[i];
    if (++index_[i] < plan_.sizes[i]) return;
    at_ -= plan_.sizes[i] * plan_.out_steps[i];
    index_[i] = 0;
  }
}

// Rows [begin, end) of the merged input into the result.
template <typename Op, typename T>
void ReduceRows(const T* in, const ReductionPlan& plan, int64_t begin,
                int64_t end, T* out) {
  const int last = static_cast<int>(plan.sizes.size()) - 1;
  const int64_t row = plan.sizes[last];
  RowWalk walk(plan, begin);
  for (int64_t r = begin; r < end; ++r, walk.MoveOn()) {
    const int64_t at = walk.at();
    const T* from = in + r * row;
    if (plan.out_steps[last] == 0) {
      out[at] = Op::Join(out[at], JoinRow<Op>(from, row));
    } else {
      for (int64_t k = 0; k < row; ++k) {
        out[at + k] = Op::Join(out[at + k], from[k]);
      }
    }
  }
}

// Threads share the outermost dimension when the result moves along it.
template <typename Op, typename T>
void Reduce(const T* in, const ReductionPlan& plan, int64_t elements,
            ThreadPool* pool, T* out) {
  std::fill_n(out, plan.output.num_elements(), Op::template Start<T>());
  if (elements == 0) return;
  const int64_t rows = elements / plan.sizes.back();
  if (plan.out_steps[0] == 0 || plan.sizes.size() == 1) {
    ReduceRows<Op>(in, plan, 0, rows, out);
    return;
  }
  const int64_t per_index = rows / plan.sizes[0];
  const int64_t grain = 1 + 64 * 1024 / (elements / plan.sizes[0]);
  pool->ParallelFor(plan.sizes[0], grain, [&](int64_t begin, int64_t end) {
    ReduceRows<Op>(in, plan, begin * per_index, end * per_index, out);
  });
}

template <typename T>
absl::Status DivideByCount(int64_t count, Tensor* out) {
  if constexpr (std::is_integral_v<T>) {
    if (count == 0 && out->num_elements() > 0) {
      return absl::InvalidArgumentError("the mean of no integers");
    }
  }
  for (T& value : out->flat<T>()) {
    value = static_cast<T>(value / static_cast<T>(count));
  }
  return absl::OkStatus();
}

// Complex numbers have sums and products, but no order.
template <typename Op>
constexpr bool kTakesComplex =
    !std::is_same_v<Op, MaxOp> && !std::is_same_v<Op, MinOp>;

template <typename Op, typename Visitor>
absl::Status VisitReducible(DataType dtype, Visitor visit) {
  if constexpr (kTakesComplex<Op>) {
    return VisitNumberOrComplex(dtype, "input", visit);
  } else {
    return VisitNumber(dtype, "input", visit);
  }
}

template <typename Op, bool kIsMean>
absl::StatusOr<std::unique_ptr<Kernel>> MakeReduction(
    const tensorflow::NodeDef& node) {
  if (kTakesComplex<Op>) {
    OPTFARM_RETURN_IF_ERROR(
        RequireTypeAttr(node, "T", OPTFARM_NUMBER_AND_COMPLEX_TYPES));
  } else {
    OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  }
  OPTFARM_ASSIGN_OR_RETURN(const bool keep_dims,
                           graph::GetBoolOr(node, "keep_dims", false));
  return MakeKernel([keep_dims](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& input = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const ReductionPlan plan,
                             Plan(input, context->input(1), keep_dims));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, input.dtype(), plan.output));
    return VisitReducible<Op>(input.dtype(), [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      Reduce<Op>(input.data<T>(), plan, input.num_elements(), context->pool(),
                 out->data<T>());
      return kIsMean ? DivideByCount<T>(plan.count, out) : absl::OkStatus();
    });
  });
}

template <typename T>
T SquareOf(const T& x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(x));
  } else if constexpr (std::is_floating_point_v<T>) {
    return x * x;
  } else {
    return x * std::conj(x);
  }
}

template <typename T>
T RootOf(const T& x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(std::sqrt(static_cast<double>(x)));
  } else {
    return std::sqrt(x);
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeEuclideanNorm(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "T", OPTFARM_NUMBER_AND_COMPLEX_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(const bool keep_dims,
                           graph::GetBoolOr(node, "keep_dims", false));
  return MakeKernel([keep_dims](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& input = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const ReductionPlan plan,
                             Plan(input, context->input(1), keep_dims));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, input.dtype(), plan.output));
    return VisitNumberOrComplex(
        input.dtype(), "input", [&](auto tag) -> absl::Status {
          using T = typename decltype(tag)::type;
          const Scratch<T> squares(input.num_elements());
          std::transform(input.data<T>(),
                         input.data<T>() + input.num_elements(), squares.data(),
                         SquareOf<T>);
          Reduce<SumOp>(squares.data(), plan, input.num_elements(),
                        context->pool(), out->data<T>());
          for (T& value : out->flat<T>()) value = RootOf(value);
          return absl::OkStatus();
        });
  });
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> MakeLogicalReduction(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const bool keep_dims,
                           graph::GetBoolOr(node, "keep_dims", false));
  return MakeKernel([keep_dims](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& input = context->input(0);
    OPTFARM_RETURN_IF_ERROR(RequireDtype(input, "input", tensorflow::DT_BOOL));
    OPTFARM_ASSIGN_OR_RETURN(const ReductionPlan plan,
                             Plan(input, context->input(1), keep_dims));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, input.dtype(), plan.output));
    Reduce<Op>(input.data<bool>(), plan, input.num_elements(), context->pool(),
               out->data<bool>());
    return absl::OkStatus();
  });
}

}  // namespace

void AddReductionKernels(KernelCatalog* catalog) {
  catalog->Add("Sum", MakeReduction<SumOp, false>);
  catalog->Add("Mean", MakeReduction<SumOp, true>);
  catalog->Add("Prod", MakeReduction<ProdOp, false>);
  catalog->Add("Max", MakeReduction<MaxOp, false>);
  catalog->Add("Min", MakeReduction<MinOp, false>);
  catalog->Add("EuclideanNorm", MakeEuclideanNorm);
  catalog->Add("All", MakeLogicalReduction<AllOp>);
  catalog->Add("Any", MakeLogicalReduction<AnyOp>);
}

}  // namespace optfarm::runtime
