// Cumsum and Cumprod: running results along one axis, from either end, with or
// without the element itself.

#include <complex>
#include <type_traits>

#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

struct Plus {
  template <typename T>
  static T Start() {
    return T(0);
  }
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<uint64_t>(a) +
                            static_cast<uint64_t>(b));
    } else {
      return a + b;
    }
  }
};
struct Times {
  template <typename T>
  static T Start() {
    return T(1);
  }
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<uint64_t>(a) *
                            static_cast<uint64_t>(b));
    } else {
      return a * b;
    }
  }
};

struct ScanAttrs {
  bool is_exclusive = false;
  bool is_reverse = false;
};

template <typename Op, typename T>
void Scan(const Tensor& in, int axis, const ScanAttrs& attrs, Tensor* out) {
  const int64_t outer = DimProduct(in.shape(), 0, axis);
  const int64_t inner = DimProduct(in.shape(), axis + 1, in.rank());
  const int64_t size = in.dim(axis);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      T running = Op::template Start<T>();
      for (int64_t k = 0; k < size; ++k) {
        const int64_t along = attrs.is_reverse ? size - 1 - k : k;
        const int64_t at = (o * size + along) * inner + i;
        const T next = Op::Of(running, in.data<T>()[at]);
        out->data<T>()[at] = attrs.is_exclusive ? running : next;
        running = next;
      }
    }
  }
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> MakeScan(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "T", OPTFARM_NUMBER_AND_COMPLEX_TYPES));
  ScanAttrs attrs;
  OPTFARM_ASSIGN_OR_RETURN(attrs.is_exclusive,
                           graph::GetBoolOr(node, "exclusive", false));
  OPTFARM_ASSIGN_OR_RETURN(attrs.is_reverse,
                           graph::GetBoolOr(node, "reverse", false));
  return MakeKernel([attrs](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& x = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const int axis,
                             ReadAxis(context->input(1), "axis", x.rank()));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, x.dtype(), x.shape()));
    return VisitNumberOrComplex(x.dtype(), "x", [&](auto tag) -> absl::Status {
      Scan<Op, typename decltype(tag)::type>(x, axis, attrs, out);
      return absl::OkStatus();
    });
  });
}

}  // namespace

void AddCumulativeKernels(KernelCatalog* catalog) {
  catalog->Add("Cumsum", MakeScan<Plus>);
  catalog->Add("Cumprod", MakeScan<Times>);
}

}  // namespace optfarm::runtime
