#include "engine/formats/onnx/tensors.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "engine/graph/tensor_proto.h"

namespace optfarm::formats {
namespace {

using tensorflow::DataType;

struct TypeRow {
  int onnx_type;
  const char* name;
  // DT_INVALID: not supported.
  DataType dtype;
  int bits;
};

constexpr TypeRow kTypes[] = {
    {onnx::TensorProto::FLOAT, "float32", tensorflow::DT_FLOAT, 32},
    {onnx::TensorProto::UINT8, "uint8", tensorflow::DT_UINT8, 8},
    {onnx::TensorProto::INT8, "int8", tensorflow::DT_INT8, 8},
    {onnx::TensorProto::UINT16, "uint16", tensorflow::DT_UINT16, 16},
    {onnx::TensorProto::INT16, "int16", tensorflow::DT_INT16, 16},
    {onnx::TensorProto::INT32, "int32", tensorflow::DT_INT32, 32},
    {onnx::TensorProto::INT64, "int64", tensorflow::DT_INT64, 64},
    {onnx::TensorProto::STRING, "string", tensorflow::DT_INVALID, 0},
    {onnx::TensorProto::BOOL, "bool", tensorflow::DT_BOOL, 8},
    {onnx::TensorProto::FLOAT16, "float16", tensorflow::DT_HALF, 16},
    {onnx::TensorProto::DOUBLE, "float64", tensorflow::DT_DOUBLE, 64},
    {onnx::TensorProto::UINT32, "uint32", tensorflow::DT_UINT32, 32},
    {onnx::TensorProto::UINT64, "uint64", tensorflow::DT_UINT64, 64},
    {onnx::TensorProto::COMPLEX64, "complex64", tensorflow::DT_COMPLEX64, 64},
    {onnx::TensorProto::COMPLEX128, "complex128", tensorflow::DT_COMPLEX128,
     128},
    {onnx::TensorProto::BFLOAT16, "bfloat16", tensorflow::DT_BFLOAT16, 16},
    {onnx::TensorProto::FLOAT8E4M3FN, "float8e4m3fn", tensorflow::DT_INVALID,
     8},
    {onnx::TensorProto::FLOAT8E4M3FNUZ, "float8e4m3fnuz",
     tensorflow::DT_INVALID, 8},
    {onnx::TensorProto::FLOAT8E5M2, "float8e5m2", tensorflow::DT_INVALID, 8},
    {onnx::TensorProto::FLOAT8E5M2FNUZ, "float8e5m2fnuz",
     tensorflow::DT_INVALID, 8},
    {onnx::TensorProto::UINT4, "uint4", tensorflow::DT_UINT8, 4},
    {onnx::TensorProto::INT4, "int4", tensorflow::DT_INT8, 4},
    {onnx::TensorProto::FLOAT4E2M1, "float4e2m1", tensorflow::DT_INVALID, 4},
    {onnx::TensorProto::FLOAT8E8M0, "float8e8m0", tensorflow::DT_INVALID, 8},
    {onnx::TensorProto::UINT2, "uint2", tensorflow::DT_INVALID, 2},
    {onnx::TensorProto::INT2, "int2", tensorflow::DT_INVALID, 2},
};

const TypeRow* FindType(int onnx_type) {
  for (const TypeRow& row : kTypes) {
    if (row.onnx_type == onnx_type) return &row;
  }
  return nullptr;
}

absl::Status DataError(const onnx::TensorProto& tensor,
                       absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("the constant '", tensor.name(), "' ", what));
}

// Two 4-bit elements of a byte, the lower half first.
std::string Unpacked(absl::string_view packed, int64_t elements,
                     bool is_signed) {
  std::string bytes(static_cast<size_t>(elements), '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    const int byte = static_cast<unsigned char>(packed[i / 2]);
    const int half = i % 2 == 0 ? byte & 15 : byte >> 4;
    bytes[i] = static_cast<char>(is_signed && half > 7 ? half - 16 : half);
  }
  return bytes;
}

// The bytes that a constant's description of external data leads to.
absl::StatusOr<std::string> ExternalBytes(const onnx::TensorProto& tensor,
                                          const std::string& folder,
                                          uint64_t wanted) {
  std::string location;
  uint64_t offset = 0, length = wanted;
  for (const auto& entry : tensor.external_data()) {
    bool fits = true;
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset")
      fits = absl::SimpleAtoi(entry.value(), &offset);
    if (entry.key() == "length")
      fits = absl::SimpleAtoi(entry.value(), &length);
    if (!fits) {
      return DataError(tensor, absl::StrCat("has the ", entry.key(), " '",
                                            entry.value(), "'"));
    }
  }
  if (folder.empty()) {
    return DataError(tensor, absl::StrCat("is in the file '", location,
                                          "', which did not come with the "
                                          "model; save the model as one file"));
  }
  const std::vector<std::string> parts = absl::StrSplit(location, '/');
  for (const std::string& part : parts) {
    if (part.empty() || part == "..") {
      return DataError(tensor, absl::StrCat("is in '", location,
                                            "', which is not below the "
                                            "model's folder"));
    }
  }
  const std::string path = JoinPath(folder, location);
  const auto file = MappedFile::Open(path);
  if (!file.ok()) {
    return Annotate(file.status(), absl::StrCat("while reading the constant '",
                                                tensor.name(), "'"));
  }
  const absl::string_view bytes = (*file)->bytes();
  if (offset > bytes.size() || length > bytes.size() - offset ||
      length != wanted) {
    return DataError(
        tensor,
        absl::StrCat("needs ", wanted, " bytes, but ", length, " from ", offset,
                     " of '", path, "' (", bytes.size(), " bytes) do not fit"));
  }
  return std::string(bytes.substr(offset, length));
}

template <typename T, typename List>
absl::StatusOr<std::string> FromList(const onnx::TensorProto& tensor,
                                     const List& list, int64_t elements) {
  if (list.size() != elements) {
    return DataError(
        tensor, absl::StrCat("has ", list.size(), " elements, not ", elements));
  }
  std::string bytes(static_cast<size_t>(elements) * sizeof(T), '\0');
  for (int i = 0; i < list.size(); ++i) {
    const T value = static_cast<T>(list[i]);
    std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof(T), &value,
                sizeof(T));
  }
  return bytes;
}

// Elements from the list of the tensor's type.
absl::StatusOr<std::string> ListedBytes(const onnx::TensorProto& tensor,
                                        int64_t elements) {
  switch (tensor.data_type()) {
    case onnx::TensorProto::FLOAT:
      return FromList<float>(tensor, tensor.float_data(), elements);
    case onnx::TensorProto::DOUBLE:
      return FromList<double>(tensor, tensor.double_data(), elements);
    case onnx::TensorProto::INT64:
      return FromList<int64_t>(tensor, tensor.int64_data(), elements);
    case onnx::TensorProto::UINT32:
      return FromList<uint32_t>(tensor, tensor.uint64_data(), elements);
    case onnx::TensorProto::UINT64:
      return FromList<uint64_t>(tensor, tensor.uint64_data(), elements);
    case onnx::TensorProto::INT32:
      return FromList<int32_t>(tensor, tensor.int32_data(), elements);
    case onnx::TensorProto::INT16:
    case onnx::TensorProto::UINT16:
    case onnx::TensorProto::FLOAT16:
    case onnx::TensorProto::BFLOAT16:
      return FromList<uint16_t>(tensor, tensor.int32_data(), elements);
    case onnx::TensorProto::INT8:
    case onnx::TensorProto::UINT8:
    case onnx::TensorProto::BOOL:
      return FromList<uint8_t>(tensor, tensor.int32_data(), elements);
    case onnx::TensorProto::INT4:
    case onnx::TensorProto::UINT4:
      return FromList<uint8_t>(tensor, tensor.int32_data(), (elements + 1) / 2);
    case onnx::TensorProto::COMPLEX64:
      return FromList<float>(tensor, tensor.float_data(), elements * 2);
    case onnx::TensorProto::COMPLEX128:
      return FromList<double>(tensor, tensor.double_data(), elements * 2);
    default:
      return DataError(tensor, "has no elements");
  }
}

// The elements as they are in the file, 4-bit ones two to a byte.
absl::StatusOr<std::string> ElementBytes(const onnx::TensorProto& tensor,
                                         const std::string& folder,
                                         int64_t elements, int bits) {
  const uint64_t wanted =
      (static_cast<uint64_t>(elements) * static_cast<uint64_t>(bits) + 7) / 8;
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
    return ExternalBytes(tensor, folder, wanted);
  }
  if (!tensor.has_raw_data()) return ListedBytes(tensor, elements);
  if (tensor.raw_data().size() != wanted) {
    return DataError(tensor, absl::StrCat("has ", tensor.raw_data().size(),
                                          " bytes, not ", wanted));
  }
  return tensor.raw_data();
}

}  // namespace

std::string OnnxTypeName(int onnx_type) {
  const TypeRow* row = FindType(onnx_type);
  return row == nullptr ? absl::StrCat("type ", onnx_type) : row->name;
}

absl::StatusOr<DataType> DataTypeOfOnnx(int onnx_type) {
  const TypeRow* row = FindType(onnx_type);
  if (row == nullptr || row->dtype == tensorflow::DT_INVALID) {
    return absl::UnimplementedError(absl::StrCat(
        "tensors of ", OnnxTypeName(onnx_type), " are not supported"));
  }
  return row->dtype;
}

int BitsOfOnnx(int onnx_type) {
  const TypeRow* row = FindType(onnx_type);
  return row == nullptr ? 0 : row->bits;
}

absl::StatusOr<OnnxValueType> ReadOnnxType(const onnx::TypeProto& type) {
  switch (type.value_case()) {
    case onnx::TypeProto::kTensorType:
      break;
    case onnx::TypeProto::kSequenceType:
      return absl::UnimplementedError("sequences are not supported");
    case onnx::TypeProto::kMapType:
      return absl::UnimplementedError("maps are not supported");
    case onnx::TypeProto::kOptionalType:
      return absl::UnimplementedError("optional values are not supported");
    case onnx::TypeProto::kSparseTensorType:
      return absl::UnimplementedError("sparse tensors are not supported");
    default:
      return absl::UnimplementedError("a value without a type");
  }
  OnnxValueType read;
  read.onnx_type = type.tensor_type().elem_type();
  OPTFARM_ASSIGN_OR_RETURN(read.dtype, DataTypeOfOnnx(read.onnx_type));
  if (!type.tensor_type().has_shape()) return read;
  std::vector<int64_t> dims;
  for (const auto& dim : type.tensor_type().shape().dim()) {
    // Some tools write 0 or -1 for a size that they do not know.
    const bool is_known = dim.has_dim_value() && dim.dim_value() >= 0;
    dims.push_back(is_known ? dim.dim_value() : graph::kUnknownDim);
    read.dim_names.push_back(dim.dim_param());
  }
  if (dims.size() > static_cast<size_t>(graph::kMaxRank)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor of ", dims.size(), " dimensions"));
  }
  read.shape = graph::PartialShape(std::move(dims));
  return read;
}

absl::StatusOr<tensorflow::TensorProto> ReadOnnxTensor(
    const onnx::TensorProto& tensor, const std::string& folder) {
  const auto dtype = DataTypeOfOnnx(tensor.data_type());
  if (!dtype.ok()) {
    return Annotate(dtype.status(),
                    absl::StrCat("the constant '", tensor.name(), "'"));
  }
  if (tensor.has_segment()) {
    return DataError(tensor, "is stored in segments, which is not supported");
  }
  tensorflow::TensorProto read;
  read.set_dtype(*dtype);
  for (const int64_t dim : tensor.dims()) {
    read.mutable_tensor_shape()->add_dim()->set_size(dim);
  }
  const auto elements = graph::ElementCount(read.tensor_shape());
  if (!elements.ok()) {
    return Annotate(elements.status(),
                    absl::StrCat("the constant '", tensor.name(), "'"));
  }
  if (*elements > std::numeric_limits<int64_t>::max() / 128) {
    return DataError(tensor, "is too large");
  }
  const int bits = BitsOfOnnx(tensor.data_type());
  OPTFARM_ASSIGN_OR_RETURN(std::string bytes,
                           ElementBytes(tensor, folder, *elements, bits));
  if (bits == 4) {
    bytes = Unpacked(bytes, *elements, *dtype == tensorflow::DT_INT8);
  }
  if (*dtype == tensorflow::DT_BOOL) {
    for (char& byte : bytes) byte = byte != 0;
  }
  *read.mutable_tensor_content() = std::move(bytes);
  return read;
}

absl::StatusOr<tensorflow::TensorProto> ReadSparseOnnxTensor(
    const onnx::SparseTensorProto& tensor, const std::string& folder,
    int64_t most_bytes) {
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::TensorProto values,
                           ReadOnnxTensor(tensor.values(), folder));
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::TensorProto indices,
                           ReadOnnxTensor(tensor.indices(), folder));
  tensorflow::TensorProto dense;
  dense.set_dtype(values.dtype());
  for (const int64_t dim : tensor.dims()) {
    dense.mutable_tensor_shape()->add_dim()->set_size(dim);
  }
  OPTFARM_ASSIGN_OR_RETURN(const int64_t elements,
                           graph::ElementCount(dense.tensor_shape()));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t given,
                           graph::ElementCount(values.tensor_shape()));
  const int64_t width = graph::ElementBytes(values.dtype());
  if (elements > most_bytes / width) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the sparse tensor '", tensor.values().name(), "' has ", elements,
        " elements, which take far more memory than the file has bytes"));
  }
  const int columns = indices.tensor_shape().dim_size();
  const int64_t per_index = columns == 2 ? tensor.dims_size() : 1;
  const auto list =
      graph::ReadIntegers(indices, std::numeric_limits<int32_t>::max());
  if (!list.has_value() || columns > 2 || columns < 1 ||
      static_cast<int64_t>(list->size()) != given * per_index) {
    return DataError(tensor.values(), "has indices that do not fit");
  }
  std::string bytes(static_cast<size_t>(elements * width), '\0');
  for (int64_t i = 0; i < given; ++i) {
    int64_t place = 0;
    for (int64_t j = 0; j < per_index; ++j) {
      const int64_t index = (*list)[static_cast<size_t>(i * per_index + j)];
      const int64_t size =
          per_index == 1 ? elements : tensor.dims(static_cast<int>(j));
      if (index < 0 || index >= size) {
        return DataError(tensor.values(),
                         absl::StrCat("has the index ", index));
      }
      place = place * size + index;
    }
    std::memcpy(bytes.data() + place * width,
                values.tensor_content().data() + i * width,
                static_cast<size_t>(width));
  }
  *dense.mutable_tensor_content() = std::move(bytes);
  return dense;
}

}  // namespace optfarm::formats
