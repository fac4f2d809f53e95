// ImmutableConst: a constant whose value lies in a named region of a
// memory-mapped package and is used there, without a copy.

#ifndef OPTFARM_ENGINE_RUNTIME_CORE_IMMUTABLE_CONST_H_
#define OPTFARM_ENGINE_RUNTIME_CORE_IMMUTABLE_CONST_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "base/shared_bytes.h"
#include "engine/runtime/core/tensor.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::runtime {

// Finds a region by the name that nodes give.
// ERRORS: NotFound with the nearest names.
using RegionFinder =
    std::function<absl::StatusOr<SharedBytes>(const std::string& name)>;

// The node's value: a view of its region. A region that is not aligned to 64
// bytes, as small builds of TensorFlow 1.3 wrote them, and bools are copied.
// `mapped_file`, if given, is set to that which the value is a view of; nothing
// for none. A view of 64 KB and more may then stand at any byte (IsAligned).
// ERRORS: InvalidArgument for a bad attribute, a dtype without fixed size, or a
// region shorter than the tensor; FailedPrecondition without a finder; the
// finder's.
absl::StatusOr<Tensor> ReadImmutableConst(
    const tensorflow::NodeDef& node, const RegionFinder& find_region,
    absl::string_view* mapped_file = nullptr);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_CORE_IMMUTABLE_CONST_H_
