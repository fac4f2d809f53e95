// What the kernels on lists of tensors share.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_STATE_TENSOR_LIST_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_STATE_TENSOR_LIST_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/graph/partial_shape.h"
#include "engine/runtime/core/counted_vector.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/core/resource.h"
#include "engine/runtime/reference/state/handles.h"

namespace optfarm::runtime {

class TensorList final : public Resource {
 public:
  absl::string_view kind() const override { return "tensor list"; }

  DataType dtype = tensorflow::DT_INVALID;
  graph::PartialShape element_shape;
  // Without a value where none was set.
  CountedVector<Tensor> elements;

  int64_t size() const { return static_cast<int64_t>(elements.size()); }
};

Tensor HandleOf(std::shared_ptr<TensorList> list);

// The list of an input.
// ERRORS: InvalidArgument for anything else.
absl::StatusOr<TensorList*> ListOf(const KernelContext& context, int input = 0);

// The list of input 0 for writing, as output 0.
absl::StatusOr<TensorList*> ChangeableList(KernelContext* context);

// The shape that an input of type int32 or int64 describes; a scalar -1 is an
// unknown rank.
absl::StatusOr<graph::PartialShape> ReadElementShape(const Tensor& tensor);

// The same as an inferred shape is written.
graph::PartialShape ToPartialShape(const Shape& shape);

// Whether a value may be an element.
absl::Status CheckElement(const TensorList& list, const Tensor& value);

// ERRORS: InvalidArgument for a negative size and for one that is taken for an
// attack on memory.
absl::Status CheckListSize(int64_t size);

// ERRORS: GetType's; Unimplemented for a dtype without elements.
absl::StatusOr<DataType> ReadElementType(const tensorflow::NodeDef& node);

// Row `row` of the tensor's first dimension; several, of one more dimension,
// when `count` is not negative. REQUIRES: they are there.
absl::StatusOr<Tensor> RowsOf(const Tensor& tensor, int64_t row,
                              int64_t count = -1);

// Concat, Split, Scatter (tensor_list_parts.cc).
void AddTensorListPartKernels(KernelCatalog* catalog);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_STATE_TENSOR_LIST_H_
