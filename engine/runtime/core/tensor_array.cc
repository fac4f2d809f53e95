#include "engine/runtime/core/tensor_array.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"

namespace optfarm::runtime {
namespace {

bool Fits(const graph::PartialShape& wanted, const Shape& shape) {
  if (!wanted.has_rank()) return true;
  if (wanted.rank() != shape.rank()) return false;
  for (int i = 0; i < shape.rank(); ++i) {
    if (wanted.dim(i) != graph::kUnknownDim && wanted.dim(i) != shape.dim(i)) {
      return false;
    }
  }
  return true;
}

absl::Status Error(int64_t index, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("element ", index, " of the tensor array ", what));
}

}  // namespace

int64_t TensorArray::size() const {
  absl::MutexLock lock(&mutex_);
  return size_;
}

graph::PartialShape TensorArray::element_shape() const {
  absl::MutexLock lock(&mutex_);
  return options_.element_shape;
}

absl::Status TensorArray::CheckIndex(int64_t index) const {
  if (is_closed_) {
    return absl::InvalidArgumentError("the tensor array was closed");
  }
  const bool may_grow =
      options_.is_dynamic && index < std::numeric_limits<int32_t>::max();
  if (index >= 0 && (index < size_ || may_grow)) return absl::OkStatus();
  return Error(
      index, absl::StrCat("is not there: the array has ", size_,
                          options_.is_dynamic ? " elements"
                                              : " elements and does not grow"));
}

absl::Status TensorArray::CheckValue(int64_t index, const Tensor& value) const {
  if (value.dtype() != options_.dtype) {
    return Error(index, absl::StrCat("is ", graph::DataTypeName(options_.dtype),
                                     ", got ", value.DebugString(0)));
  }
  // A handle in here could lead back to this array.
  if (value.dtype() == tensorflow::DT_RESOURCE) {
    return Error(index, "cannot be a handle");
  }
  if (!Fits(options_.element_shape, value.shape())) {
    return Error(index,
                 absl::StrCat("has shape ", options_.element_shape.ToString(),
                              ", got ", value.shape().ToString()));
  }
  return absl::OkStatus();
}

absl::Status TensorArray::Write(int64_t index, Tensor value) {
  absl::MutexLock lock(&mutex_);
  OPTFARM_RETURN_IF_ERROR(CheckIndex(index));
  OPTFARM_RETURN_IF_ERROR(CheckValue(index, value));
  if (elements_.contains(index)) {
    return Error(index, "cannot be written: it was written before");
  }
  if (options_.has_identical_shapes && !options_.element_shape.is_static()) {
    const auto dims = value.shape().dims();
    options_.element_shape =
        graph::PartialShape(std::vector<int64_t>(dims.begin(), dims.end()));
  }
  size_ = std::max(size_, index + 1);
  elements_[index].value = std::move(value);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> TensorArray::Read(int64_t index) {
  absl::MutexLock lock(&mutex_);
  OPTFARM_RETURN_IF_ERROR(CheckIndex(index));
  const auto it = index < size_ ? elements_.find(index) : elements_.end();
  if (it == elements_.end()) {
    if (index >= size_ || !options_.element_shape.is_static()) {
      return Error(index, "cannot be read: nothing was written to it");
    }
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                             Shape::FromDims(options_.element_shape.dims()));
    return Tensor::Zeros(options_.dtype, shape);
  }
  Element& element = it->second;
  if (element.is_cleared) {
    return Error(index, "cannot be read twice: the array has clear_after_read");
  }
  if (!options_.clear_after_read) return element.value;
  element.is_cleared = true;
  return std::move(element.value);
}

absl::Status TensorArray::Close() {
  absl::MutexLock lock(&mutex_);
  is_closed_ = true;
  elements_.clear();
  return absl::OkStatus();
}

}  // namespace optfarm::runtime
