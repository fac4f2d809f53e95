// The reference kernels, one for each op, and how one node is run by them.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_CATALOG_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_CATALOG_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/core/tensor.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::runtime {

// All kernels of this build. OWNERSHIP: lives for the whole process.
const KernelCatalog& AllKernels();

// Runs one node alone, without a session.
// ERRORS: Unimplemented without a kernel; InvalidArgument for a number of
// inputs that the op does not take; else the kernel's own.
absl::StatusOr<std::vector<Tensor>> EvaluateNode(
    const tensorflow::NodeDef& node, absl::Span<const Tensor> inputs,
    int num_outputs);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_CATALOG_H_
