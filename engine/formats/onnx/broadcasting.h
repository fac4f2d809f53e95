// Shapes of inputs brought together, for the lowerings of several families.

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_BROADCASTING_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_BROADCASTING_H_

#include <utility>

#include "absl/status/statusor.h"
#include "engine/formats/onnx/lowering.h"

namespace optfarm::formats {

// Inputs 0 and 1 of an elementwise operator, the second shaped so that NumPy's
// broadcasting does what attributes `axis` and `broadcast` said before opset 7.
absl::StatusOr<std::pair<Endpoint, Endpoint>> BroadcastInputs(NodeLowering& n);

// A matrix of the dimensions before `axis` and of those from it on.
// REQUIRES: 0 <= axis <= the tensor's rank, which is known.
absl::StatusOr<Endpoint> FlattenTo2d(NodeLowering& n, Endpoint x, int axis);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_BROADCASTING_H_
