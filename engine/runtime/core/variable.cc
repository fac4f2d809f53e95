#include "engine/runtime/core/variable.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"

namespace optfarm::runtime {
namespace {

absl::Status Uninitialized() {
  return absl::FailedPreconditionError(
      "the variable has no value yet: run the graph's initializer in a session "
      "that shares the container, or freeze the graph");
}

absl::StatusOr<Tensor> CopyOf(const Tensor& value) {
  OPTFARM_ASSIGN_OR_RETURN(Tensor copy,
                           Tensor::Allocate(value.dtype(), value.shape()));
  if (value.dtype() == tensorflow::DT_STRING) {
    std::copy_n(value.data<std::string>(), value.num_elements(),
                copy.data<std::string>());
  } else {
    std::memcpy(copy.raw(), value.raw(),
                static_cast<size_t>(value.TotalBytes()));
  }
  return copy;
}

}  // namespace

bool Variable::IsInitialized() const {
  absl::MutexLock lock(&mutex_);
  return value_.has_value();
}

absl::StatusOr<Tensor> Variable::Read() const {
  absl::MutexLock lock(&mutex_);
  if (!value_.has_value()) return Uninitialized();
  return value_;
}

absl::Status Variable::Assign(Tensor value) {
  if (value.dtype() != dtype_) {
    return absl::InvalidArgumentError(
        absl::StrCat("the variable is ", graph::DataTypeName(dtype_), ", got ",
                     value.DebugString(0)));
  }
  // A handle in here could lead back to this variable.
  if (value.is_handle()) {
    return absl::InvalidArgumentError("a variable cannot hold a handle");
  }
  absl::MutexLock lock(&mutex_);
  value_ = std::move(value);
  return absl::OkStatus();
}

void Variable::Clear() {
  absl::MutexLock lock(&mutex_);
  value_ = Tensor();
}

absl::Status Variable::Update(
    const std::function<absl::Status(Tensor*)>& change) {
  absl::MutexLock lock(&mutex_);
  if (!value_.has_value()) return Uninitialized();
  // Whoever read the value keeps what he read.
  if (!value_.IsSoleOwner()) {
    OPTFARM_ASSIGN_OR_RETURN(value_, CopyOf(value_));
  }
  return change(&value_);
}

Variable* VariableOf(const Tensor& handle) {
  return dynamic_cast<Variable*>(handle.resource());
}

}  // namespace optfarm::runtime
