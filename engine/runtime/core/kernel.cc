#include "engine/runtime/core/kernel.h"

#include <algorithm>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "engine/runtime/core/memory_budget.h"
#include "engine/runtime/core/run_bounds.h"

namespace optfarm::runtime {

KernelContext::KernelContext(absl::Span<Tensor> inputs,
                             absl::Span<Tensor> outputs,
                             const KernelEnvironment& environment)
    : environment_(environment) {
  own_.reserve(inputs.size() + outputs.size());
  for (Tensor& input : inputs) own_.push_back(&input);
  for (Tensor& output : outputs) own_.push_back(&output);
  inputs_ = absl::MakeConstSpan(own_).first(inputs.size());
  outputs_ = absl::MakeConstSpan(own_).subspan(inputs.size());
}

absl::StatusOr<Tensor*> KernelContext::AllocateOutput(int i, DataType dtype,
                                                      const Shape& shape) {
  OPTFARM_ASSIGN_OR_RETURN(*outputs_[i], Tensor::Allocate(dtype, shape));
  return outputs_[i];
}

absl::StatusOr<Tensor*> KernelContext::ForwardOrAllocateOutput(
    int i, int from, DataType dtype, const Shape& shape) {
  const Tensor& input = *inputs_[from];
  if (input.dtype() == dtype && ElementSize(dtype) > 0 &&
      input.num_elements() == shape.num_elements() && MayReuse(from)) {
    // Both names of the buffer stay: the kernel still reads its input.
    *outputs_[i] = input.Reshaped(shape);
    return outputs_[i];
  }
  return AllocateOutput(i, dtype, shape);
}

namespace {

// Memory that a kernel asks for itself, not as a tensor.
absl::Status NoWorkingMemory() {
  std::string message = "no working memory";
  const std::shared_ptr<MemoryBudget>* budget = BudgetScope::Current();
  if (budget != nullptr && (*budget)->limit() != MemoryBudget::kUnlimited) {
    absl::StrAppend(&message, ": ", (*budget)->used(), " of the limit of ",
                    (*budget)->limit(), " bytes are taken");
  }
  return absl::ResourceExhaustedError(message);
}

}  // namespace

absl::Status ComputeOrLeave(const Kernel& kernel, KernelContext* context) {
  try {
    return kernel.Compute(context);
  } catch (const RunEnded&) {
    const RunBounds* bounds = BoundsScope::Current();
    const absl::Status status =
        bounds == nullptr ? absl::OkStatus() : bounds->Check();
    // The flag may have been taken back; the run is not complete all the same.
    return status.ok() ? absl::CancelledError("the run was cancelled") : status;
  } catch (const std::bad_alloc&) {
    return NoWorkingMemory();
  } catch (const std::length_error&) {
    return NoWorkingMemory();
  }
}

void KernelCatalog::AddSelected(std::string_view op, KernelFactory make,
                                bool is_pure) {
  const bool added =
      entries_.emplace(std::string(op), KernelEntry{make, is_pure, family_})
          .second;
  OPTFARM_CHECK(added);
}

const KernelEntry* KernelCatalog::Find(absl::string_view op) const {
  const auto it = entries_.find(op);
  return it == entries_.end() ? nullptr : &it->second;
}

std::vector<std::string> KernelCatalog::Ops() const {
  std::vector<std::string> ops;
  for (const auto& [op, entry] : entries_) ops.push_back(op);
  std::sort(ops.begin(), ops.end());
  return ops;
}

}  // namespace optfarm::runtime
