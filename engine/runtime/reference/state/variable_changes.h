// Changes to what variables hold, element by element.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_STATE_VARIABLE_CHANGES_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_STATE_VARIABLE_CHANGES_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/core/variable.h"

namespace optfarm::runtime {

enum class Change { kSet, kAdd, kSubtract, kMultiply, kDivide, kMin, kMax };

// The variable that input 0 leads to.
// ERRORS: InvalidArgument for another tensor.
absl::StatusOr<Variable*> VariableInput(const KernelContext& context);

// Makes `change` to what input 0 leads to. Where a graph was frozen a constant
// stands in a variable's place: then the op gives the changed value, and the
// constant stays as it is.
absl::Status ChangeReferred(KernelContext* context,
                            const std::function<absl::Status(Tensor*)>& change);

// Changes `size` elements of `value` from `to` on by those of `updates` from
// `from` on. REQUIRES: both have them, and are of one dtype.
// ERRORS: Unimplemented for a dtype without arithmetic; kSet takes all.
absl::Status ChangeElements(Change change, const Tensor& updates, int64_t from,
                            int64_t size, int64_t to, Tensor* value);

// The part of the family of variables that scatters.
void AddVariableScatterKernels(KernelCatalog* catalog);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_STATE_VARIABLE_CHANGES_H_
