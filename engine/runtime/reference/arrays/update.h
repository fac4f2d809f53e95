// What a scatter does with an element that is there and one that comes to it.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_ARRAYS_UPDATE_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_ARRAYS_UPDATE_H_

#include <cstdint>
#include <type_traits>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/runtime/core/tensor.h"

namespace optfarm::runtime {

enum class Update { kAssign, kAdd, kSubtract, kMultiply, kMin, kMax };

// Integers wrap around.
template <typename T>
T Updated(Update update, T old, T value) {
  switch (update) {
    case Update::kAssign:
      return value;
    case Update::kMin:
      return value < old ? value : old;
    case Update::kMax:
      return old < value ? value : old;
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    const uint64_t a = static_cast<uint64_t>(old);
    const uint64_t b = static_cast<uint64_t>(value);
    if (update == Update::kMultiply) return static_cast<T>(a * b);
    return static_cast<T>(update == Update::kAdd ? a + b : a - b);
  } else {
    if (update == Update::kMultiply) return old * value;
    return update == Update::kAdd ? old + value : old - value;
  }
}

// A copy of `value` that may be written.
// ERRORS: ResourceExhausted when the memory is not to be had; Unimplemented
// naming `name` for a dtype without elements.
absl::StatusOr<Tensor> WritableCopy(const Tensor& value,
                                    absl::string_view name);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_ARRAYS_UPDATE_H_
