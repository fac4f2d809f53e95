// Types and constants of ONNX as TensorFlow's.

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_TENSORS_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_TENSORS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/partial_shape.h"
#include "onnx/onnx.pb.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::formats {

// "float16", "uint4", ...; "type 99" for a number that is none.
std::string OnnxTypeName(int onnx_type);

// 4-bit types are kept in the 8-bit type of their sign.
// ERRORS: Unimplemented naming the type.
absl::StatusOr<tensorflow::DataType> DataTypeOfOnnx(int onnx_type);

// Bits that the elements of a type really have: 4 or 8 for integers of a byte.
int BitsOfOnnx(int onnx_type);

// A value's type.
struct OnnxValueType {
  int onnx_type = 0;
  tensorflow::DataType dtype = tensorflow::DT_INVALID;
  graph::PartialShape shape;
  // "" for those without a name.
  std::vector<std::string> dim_names;
};

// ERRORS: Unimplemented for sequences, maps, optional values, sparse tensors
// and types that we do not read, each named; InvalidArgument for a shape that
// no tensor has.
absl::StatusOr<OnnxValueType> ReadOnnxType(const onnx::TypeProto& type);

// A constant. External data are read from `folder`; empty: there are none.
// ERRORS: as above; InvalidArgument for data that do not fit the shape, or that
// are not where they are said to be.
absl::StatusOr<tensorflow::TensorProto> ReadOnnxTensor(
    const onnx::TensorProto& tensor, const std::string& folder);

// A dense tensor from one of which the file has only some elements.
// ERRORS: as above; ResourceExhausted when it takes more than `most_bytes`.
absl::StatusOr<tensorflow::TensorProto> ReadSparseOnnxTensor(
    const onnx::SparseTensorProto& tensor, const std::string& folder,
    int64_t most_bytes);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_TENSORS_H_
