#include "engine/runtime/reference/state/variable_changes.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/status_macros.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/state/handles.h"

namespace optfarm::runtime {
namespace {

template <typename T>
T Changed(Change change, T old, T update) {
  switch (change) {
    case Change::kSet:
      return update;
    case Change::kAdd:
      return static_cast<T>(old + update);
    case Change::kSubtract:
      return static_cast<T>(old - update);
    case Change::kMultiply:
      if constexpr (std::is_integral_v<T>) {
        // Short types would be multiplied as int, which must not overflow.
        return static_cast<T>(static_cast<uint64_t>(old) *
                              static_cast<uint64_t>(update));
      }
      return static_cast<T>(old * update);
    case Change::kDivide:
      // An integer divided by zero stops the process; TensorFlow gives zero.
      if constexpr (std::is_integral_v<T>) {
        if (update == 0) return 0;
        if constexpr (std::is_signed_v<T>) {
          if (update == -1) return static_cast<T>(0 - old);
        }
      }
      return static_cast<T>(old / update);
    case Change::kMin:
      return std::min(old, update);
    case Change::kMax:
      return std::max(old, update);
  }
  return update;
}

}  // namespace

absl::StatusOr<Variable*> VariableInput(const KernelContext& context) {
  return ResourceOf<Variable>(context, 0, "variable");
}

absl::Status ChangeReferred(
    KernelContext* context,
    const std::function<absl::Status(Tensor*)>& change) {
  const Tensor& input = context->input(0);
  const bool is_value = input.has_value() && input.resource() == nullptr &&
                        context->num_outputs() == 1;
  if (!is_value) {
    OPTFARM_ASSIGN_OR_RETURN(Variable * variable, VariableInput(*context));
    OPTFARM_RETURN_IF_ERROR(variable->Update(change));
    if (context->num_outputs() > 0) context->SetOutput(0, input);
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(Tensor value,
                           Tensor::Allocate(input.dtype(), input.shape()));
  OPTFARM_RETURN_IF_ERROR(
      VisitBySize(input.dtype(), "ref", [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        std::copy_n(input.data<T>(), input.num_elements(), value.data<T>());
        return absl::OkStatus();
      }));
  OPTFARM_RETURN_IF_ERROR(change(&value));
  context->SetOutput(0, std::move(value));
  return absl::OkStatus();
}

absl::Status ChangeElements(Change change, const Tensor& updates, int64_t from,
                            int64_t size, int64_t to, Tensor* value) {
  if (change == Change::kSet) {
    return VisitBySize(value->dtype(), "ref", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      std::copy_n(updates.data<T>() + from, size, value->data<T>() + to);
      return absl::OkStatus();
    });
  }
  return VisitNumber(value->dtype(), "ref", [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    // Overflow wraps, as in TensorFlow.
    using U = std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                 std::type_identity<T>>;
    for (int64_t i = 0; i < size; ++i) {
      T* at = value->data<T>() + to + i;
      const T update = updates.data<T>()[from + i];
      if (change == Change::kAdd || change == Change::kSubtract ||
          change == Change::kMultiply) {
        *at = static_cast<T>(Changed<typename U::type>(
            change, static_cast<typename U::type>(*at),
            static_cast<typename U::type>(update)));
      } else {
        *at = Changed<T>(change, *at, update);
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace optfarm::runtime
