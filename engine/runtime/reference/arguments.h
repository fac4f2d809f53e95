// Reading and checking what a kernel is given: attributes when it is made,
// inputs when it runs. A model is untrusted, so every kernel begins here. Each
// message says what was expected and what came.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_ARGUMENTS_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_ARGUMENTS_H_

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/core/tensor.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::runtime {

// More dimensions than any op allows; bounds every list that describes a shape.
inline constexpr int kMaxRank = 254;

// ERRORS: Unimplemented when the node has type attribute `attr` and it is none
// of `supported`. A node without the attribute passes: its inputs are checked.
absl::Status RequireTypeAttr(const tensorflow::NodeDef& node,
                             absl::string_view attr,
                             std::initializer_list<DataType> supported);

// The rest return InvalidArgument. `name` is the argument's name in TensorFlow.
absl::Status RequireInputs(const KernelContext& context, int count);
absl::Status RequireInputsAtLeast(const KernelContext& context, int count);
absl::Status RequireOutputs(const KernelContext& context, int count);
absl::Status RequireDtype(const Tensor& tensor, absl::string_view name,
                          DataType dtype);
absl::Status RequireSameDtype(const Tensor& a, const Tensor& b);
absl::Status RequireRank(const Tensor& tensor, absl::string_view name,
                         int rank);
absl::Status RequireShape(const Tensor& tensor, absl::string_view name,
                          const Shape& shape);
// A tensor with exactly one element (TensorFlow takes [1] for a scalar).
absl::Status RequireOneElement(const Tensor& tensor, absl::string_view name);

// What a kernel says of a dtype it has no code for.
absl::Status UnsupportedDtype(absl::string_view name, DataType dtype);

// The value of a one-element integer tensor.
absl::StatusOr<int64_t> ReadInteger(const Tensor& tensor,
                                    absl::string_view name);
// The elements of an integer vector (or scalar) of at most kMaxRank elements.
absl::StatusOr<std::vector<int64_t>> ReadIntegers(const Tensor& tensor,
                                                  absl::string_view name);

// `axis` counted from the end when negative, as 0..rank-1.
absl::StatusOr<int> NormalizeAxis(int64_t axis, int rank);
absl::StatusOr<int> ReadAxis(const Tensor& tensor, absl::string_view name,
                             int rank);

// `shape` with one dimension replaced, checked for overflow.
absl::StatusOr<Shape> WithDim(const Shape& shape, int axis, int64_t size);

// Product of dims [begin, end).
int64_t DimProduct(const Shape& shape, int begin, int end);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_ARGUMENTS_H_
