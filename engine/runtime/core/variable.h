// A variable: one value that changes between and within runs. Both kinds of
// TensorFlow are the same here: a reference (Variable, VariableV2) and a
// resource (VarHandleOp) are handles to a Variable.

#ifndef OPTFARM_ENGINE_RUNTIME_CORE_VARIABLE_H_
#define OPTFARM_ENGINE_RUNTIME_CORE_VARIABLE_H_

#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "engine/runtime/core/resource.h"
#include "engine/runtime/core/tensor.h"

namespace optfarm::runtime {

class Variable final : public Resource {
 public:
  explicit Variable(DataType dtype) : dtype_(dtype) {}
  absl::string_view kind() const override { return "variable"; }

  DataType dtype() const { return dtype_; }
  bool IsInitialized() const;
  // The value as it is now: later changes do not touch it.
  // ERRORS: FailedPrecondition before the first assignment.
  absl::StatusOr<Tensor> Read() const;
  // ERRORS: InvalidArgument for another dtype.
  absl::Status Assign(Tensor value);
  // As if it had never been assigned.
  void Clear();
  // Calls change() with the value, in a buffer of its own.
  // ERRORS: FailedPrecondition before the first assignment; change()'s.
  absl::Status Update(const std::function<absl::Status(Tensor*)>& change);

 private:
  const DataType dtype_;
  mutable absl::Mutex mutex_;
  Tensor value_ ABSL_GUARDED_BY(mutex_);
};

// The variable that a handle leads to; nullptr for any other tensor.
Variable* VariableOf(const Tensor& handle);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_CORE_VARIABLE_H_
