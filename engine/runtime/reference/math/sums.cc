// Sums over whole tensors: AddN and AccumulateNV2 of many, L2Loss of one.

#include <algorithm>
#include <complex>
#include <type_traits>

#include "base/status_macros.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

// Integers wrap around.
template <typename T>
T Plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeAddN(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "T", OPTFARM_NUMBER_AND_COMPLEX_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputsAtLeast(*context, 1));
    const Tensor& first = context->input(0);
    for (int i = 1; i < context->num_inputs(); ++i) {
      OPTFARM_RETURN_IF_ERROR(RequireSameDtype(first, context->input(i)));
      OPTFARM_RETURN_IF_ERROR(
          RequireShape(context->input(i), "inputs", first.shape()));
    }
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, first.dtype(), first.shape()));
    return VisitNumberOrComplex(
        first.dtype(), "inputs", [&](auto tag) -> absl::Status {
          using T = typename decltype(tag)::type;
          const int64_t count = first.num_elements();
          std::copy_n(first.data<T>(), count, out->data<T>());
          for (int k = 1; k < context->num_inputs(); ++k) {
            const T* in = context->input(k).data<T>();
            T* sum = out->data<T>();
            for (int64_t i = 0; i < count; ++i) sum[i] = Plus(sum[i], in[i]);
          }
          return absl::OkStatus();
        });
  });
}

// Half the sum of the squares.
absl::StatusOr<std::unique_ptr<Kernel>> MakeL2Loss(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& t = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, t.dtype(), Shape()));
    return VisitFloat(t.dtype(), "t", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      double sum = 0.0;
      for (T x : t.flat<T>()) sum += double{x} * double{x};
      *out->data<T>() = static_cast<T>(sum / 2.0);
      return absl::OkStatus();
    });
  });
}

}  // namespace

void AddSumKernels(KernelCatalog* catalog) {
  catalog->Add("AddN", MakeAddN);
  catalog->Add("AccumulateNV2", MakeAddN);
  catalog->Add("L2Loss", MakeL2Loss);
}

}  // namespace optfarm::runtime
