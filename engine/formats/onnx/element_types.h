// Types of elements, for the lowerings of several families.

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_ELEMENT_TYPES_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_ELEMENT_TYPES_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/formats/onnx/lowering.h"

namespace optfarm::formats {

inline bool IsFloatingType(DataType type) {
  return type == tensorflow::DT_FLOAT || type == tensorflow::DT_HALF ||
         type == tensorflow::DT_BFLOAT16 || type == tensorflow::DT_DOUBLE;
}

// The type that an attribute names; `absent` is ONNX's number for the default.
// ERRORS: Unimplemented for a type that we do not compute in.
absl::StatusOr<DataType> ElementTypeAttr(NodeLowering& n,
                                         absl::string_view name, int absent);

// A vector without elements: what an optional input is that is left out.
Endpoint EmptyVector(NodeLowering& n, DataType type);

// Input i, or an empty vector of the type.
Endpoint InputOrEmpty(NodeLowering& n, int i, DataType type);

// A tensor of one element as a scalar.
Endpoint AsScalar(NodeLowering& n, Endpoint tensor);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_ELEMENT_TYPES_H_
