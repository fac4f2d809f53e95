// Rarer elementwise ops: ClipByValue, Bucketize, ApproximateEqual, Xlogy and
// its kin, Cross; also EnsureShape and the permutations of data formats.

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/math/binary_loop.h"

namespace optfarm::runtime {
namespace {

// Bounds are scalars or of the input's shape.
absl::StatusOr<std::unique_ptr<Kernel>> MakeClip(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    const Tensor& t = context->input(0);
    for (int i = 1; i < 3; ++i) {
      const Tensor& bound = context->input(i);
      OPTFARM_RETURN_IF_ERROR(RequireSameDtype(t, bound));
      if (bound.num_elements() == 1) continue;
      OPTFARM_RETURN_IF_ERROR(RequireShape(bound, "a bound", t.shape()));
    }
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, t.dtype(), t.shape()));
    return VisitNumber(t.dtype(), "t", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      const auto bound = [&](int input, int64_t i) {
        const Tensor& b = context->input(input);
        return b.data<T>()[b.num_elements() == 1 ? 0 : i];
      };
      for (int64_t i = 0; i < t.num_elements(); ++i) {
        const T x = t.data<T>()[i];
        const T capped = bound(2, i) < x ? bound(2, i) : x;
        out->data<T>()[i] = capped < bound(1, i) ? bound(1, i) : capped;
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeBucketize(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "T",
                      {tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE,
                       tensorflow::DT_INT32, tensorflow::DT_INT64}));
  std::vector<float> boundaries;
  const auto attr = node.attr().find("boundaries");
  if (attr != node.attr().end()) {
    const auto& list = attr->second.list().f();
    boundaries.assign(list.begin(), list.end());
  }
  if (!std::is_sorted(boundaries.begin(), boundaries.end())) {
    return absl::InvalidArgumentError("the boundaries must ascend");
  }
  return MakeKernel([boundaries](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& input = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out,
        context->AllocateOutput(0, tensorflow::DT_INT32, input.shape()));
    return VisitNumber(input.dtype(), "input", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < input.num_elements(); ++i) {
        out->data<int32_t>()[i] = static_cast<int32_t>(
            std::upper_bound(boundaries.begin(), boundaries.end(),
                             static_cast<float>(input.data<T>()[i])) -
            boundaries.begin());
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeApproximateEqual(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(const float tolerance,
                           graph::GetFloatOr(node, "tolerance", 1e-5f));
  return MakeKernel([tolerance](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& x = context->input(0);
    const Tensor& y = context->input(1);
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(x, y));
    OPTFARM_RETURN_IF_ERROR(RequireShape(y, "y", x.shape()));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out,
        context->AllocateOutput(0, tensorflow::DT_BOOL, x.shape()));
    return VisitNumber(x.dtype(), "x", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < x.num_elements(); ++i) {
        const double difference = static_cast<double>(x.data<T>()[i]) -
                                  static_cast<double>(y.data<T>()[i]);
        out->data<bool>()[i] = std::abs(difference) < tolerance;
      }
      return absl::OkStatus();
    });
  });
}

// 0 where x is 0, whatever y is.
struct XlogyOp {
  template <typename T>
  static T Of(T x, T y) {
    return x == T(0) ? T(0) : x * std::log(y);
  }
};
struct Xlog1pyOp {
  template <typename T>
  static T Of(T x, T y) {
    return x == T(0) ? T(0) : x * std::log1p(y);
  }
};
struct XdivyOp {
  template <typename T>
  static T Of(T x, T y) {
    return x == T(0) ? T(0) : x / y;
  }
};
struct NextAfterOp {
  template <typename T>
  static T Of(T x, T y) {
    return std::nextafter(x, y);
  }
};

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> MakeBinary(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    return ComputeBroadcast(context, ChooseFloatRow<Op>);
  });
}

// The cross product of vectors of three.
absl::StatusOr<std::unique_ptr<Kernel>> MakeCross(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& a = context->input(0);
    const Tensor& b = context->input(1);
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(a, b));
    OPTFARM_RETURN_IF_ERROR(RequireShape(b, "b", a.shape()));
    if (a.rank() < 1 || a.dim(a.rank() - 1) != 3) {
      return absl::InvalidArgumentError(
          absl::StrCat("the last dimension must be 3, but the shape is ",
                       a.shape().ToString()));
    }
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, a.dtype(), a.shape()));
    return VisitNumber(a.dtype(), "a", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      // Integers wrap around.
      using W = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
      for (int64_t i = 0; i < a.num_elements(); ++i) {
        const int64_t first = i / 3 * 3;
        const int64_t j = first + (i + 1) % 3;
        const int64_t k = first + (i + 2) % 3;
        const auto at = [&](const Tensor& t, int64_t n) {
          return static_cast<W>(t.data<T>()[n]);
        };
        out->data<T>()[i] =
            static_cast<T>(at(a, j) * at(b, k) - at(a, k) * at(b, j));
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeEnsureShape(
    const tensorflow::NodeDef& node) {
  const auto attr = node.attr().find("shape");
  std::vector<int64_t> dims;
  const bool has_rank =
      attr != node.attr().end() && !attr->second.shape().unknown_rank();
  if (has_rank) {
    for (const auto& dim : attr->second.shape().dim()) {
      dims.push_back(dim.size());
    }
  }
  return MakeKernel([dims, has_rank](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& input = context->input(0);
    bool fits = !has_rank || input.rank() == static_cast<int>(dims.size());
    for (int i = 0; fits && has_rank && i < input.rank(); ++i) {
      fits = dims[i] < 0 || dims[i] == input.dim(i);
    }
    if (!fits) {
      return absl::InvalidArgumentError(
          absl::StrCat("a tensor of shape ", input.shape().ToString(),
                       " is not of the shape that the node ensures"));
    }
    context->SetOutput(0, input);
    return absl::OkStatus();
  });
}

// Both formats, checked to be permutations of each other.
struct Formats {
  std::string from;
  std::string to;
};
absl::StatusOr<Formats> ReadFormats(const tensorflow::NodeDef& node) {
  Formats formats;
  OPTFARM_ASSIGN_OR_RETURN(formats.from,
                           graph::GetStringOr(node, "src_format", "NHWC"));
  OPTFARM_ASSIGN_OR_RETURN(formats.to,
                           graph::GetStringOr(node, "dst_format", "NCHW"));
  if (!std::is_permutation(formats.from.begin(), formats.from.end(),
                           formats.to.begin(), formats.to.end())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "formats '", formats.from, "' and '", formats.to, "' do not match"));
  }
  return formats;
}

// Axis numbers of one format as those of the other.
absl::StatusOr<std::unique_ptr<Kernel>> MakeDimMap(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_INDEX_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(const Formats formats, ReadFormats(node));
  return MakeKernel([formats](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& x = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, x.AsInt64s());
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, x.dtype(), x.shape()));
    const int rank = static_cast<int>(formats.from.size());
    return VisitInteger(x.dtype(), "x", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      for (size_t i = 0; i < axes.size(); ++i) {
        OPTFARM_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(axes[i], rank));
        out->data<T>()[i] = static_cast<T>(formats.to.find(formats.from[axis]));
      }
      return absl::OkStatus();
    });
  });
}

// The values of a list per axis (or pairs of them), in the other order.
absl::StatusOr<std::unique_ptr<Kernel>> MakeVecPermute(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_INDEX_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(const Formats formats, ReadFormats(node));
  return MakeKernel([formats](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& x = context->input(0);
    const int64_t rank = static_cast<int64_t>(formats.from.size());
    const bool is_list = x.rank() == 1 && x.dim(0) == rank;
    const bool is_pairs = x.rank() == 2 && x.dim(0) == rank && x.dim(1) == 2;
    if (!is_list && !is_pairs) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a tensor of shape ", x.shape().ToString(),
          " does not have a value or a pair for each of '", formats.from, "'"));
    }
    const int64_t run = is_pairs ? 2 : 1;
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, x.dtype(), x.shape()));
    return VisitInteger(x.dtype(), "x", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < rank; ++i) {
        const int64_t from =
            static_cast<int64_t>(formats.from.find(formats.to[i]));
        std::copy_n(x.data<T>() + from * run, run, out->data<T>() + i * run);
      }
      return absl::OkStatus();
    });
  });
}

}  // namespace

void AddMoreElementwiseKernels(KernelCatalog* catalog) {
  catalog->Add("ClipByValue", MakeClip);
  catalog->Add("Bucketize", MakeBucketize);
  catalog->Add("ApproximateEqual", MakeApproximateEqual);
  catalog->Add("Xlogy", MakeBinary<XlogyOp>);
  catalog->Add("Xlog1py", MakeBinary<Xlog1pyOp>);
  catalog->Add("Xdivy", MakeBinary<XdivyOp>);
  catalog->Add("NextAfter", MakeBinary<NextAfterOp>);
  catalog->Add("Cross", MakeCross);
  catalog->Add("EnsureShape", MakeEnsureShape);
  catalog->Add("DataFormatDimMap", MakeDimMap);
  catalog->Add("DataFormatVecPermute", MakeVecPermute);
}

}  // namespace optfarm::runtime
