#include "engine/formats/tflite/tensor_facts.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/sparse_tensor.h"
#include "engine/graph/tensor_proto.h"
#include "tflite/schema_generated.h"

namespace optfarm::tflite {
namespace {

// As many as TensorFlow's shapes may have.
constexpr int kMaxRank = 254;

bool IsPacked(const Tensor& tensor) { return BitsOf(tensor) < 8; }

// ERRORS: InvalidArgument when the number of elements has more than 62 bits.
absl::StatusOr<int64_t> ElementsOf(const Tensor& tensor) {
  int64_t count = 1;
  for (const int64_t dim : ShapeOf(tensor)) {
    if (dim < 0) return absl::InvalidArgumentError("its constant has no shape");
    if (dim != 0 && count > (int64_t{1} << 62) / dim) {
      return absl::InvalidArgumentError("its shape is too large");
    }
    count *= dim;
  }
  return count;
}

int64_t BytesFor(const Tensor& tensor, int64_t elements) {
  if (IsPacked(tensor)) return (elements * BitsOf(tensor) + 7) / 8;
  return elements * graph::ElementBytes(TypeOf(tensor));
}

// Values of less than 8 bits, the first in the lowest.
std::string Unpacked(absl::string_view packed, int64_t elements, int bits,
                     bool is_signed) {
  std::string bytes(static_cast<size_t>(elements), '\0');
  const int per_byte = 8 / bits;
  for (int64_t i = 0; i < elements; ++i) {
    const auto byte = static_cast<uint8_t>(packed[i / per_byte]);
    int value = (byte >> (i % per_byte * bits)) & ((1 << bits) - 1);
    if (is_signed && value >= 1 << (bits - 1)) value -= 1 << bits;
    bytes[i] = static_cast<char>(value);
  }
  return bytes;
}

}  // namespace

tensorflow::DataType TypeOf(const Tensor& tensor) {
  switch (tensor.type()) {
    case TensorType::FLOAT32:
      return tensorflow::DT_FLOAT;
    case TensorType::FLOAT16:
      return tensorflow::DT_HALF;
    case TensorType::BFLOAT16:
      return tensorflow::DT_BFLOAT16;
    case TensorType::FLOAT64:
      return tensorflow::DT_DOUBLE;
    case TensorType::INT8:
    case TensorType::INT4:
    case TensorType::INT2:
      return tensorflow::DT_INT8;
    case TensorType::UINT8:
    case TensorType::UINT4:
      return tensorflow::DT_UINT8;
    case TensorType::INT16:
      return tensorflow::DT_INT16;
    case TensorType::UINT16:
      return tensorflow::DT_UINT16;
    case TensorType::INT32:
      return tensorflow::DT_INT32;
    case TensorType::UINT32:
      return tensorflow::DT_UINT32;
    case TensorType::INT64:
      return tensorflow::DT_INT64;
    case TensorType::UINT64:
      return tensorflow::DT_UINT64;
    case TensorType::BOOL:
      return tensorflow::DT_BOOL;
    case TensorType::COMPLEX64:
      return tensorflow::DT_COMPLEX64;
    case TensorType::COMPLEX128:
      return tensorflow::DT_COMPLEX128;
    case TensorType::RESOURCE:
      return tensorflow::DT_RESOURCE;
    default:
      return tensorflow::DT_INVALID;
  }
}

int BitsOf(const Tensor& tensor) {
  switch (tensor.type()) {
    case TensorType::INT4:
    case TensorType::UINT4:
      return 4;
    case TensorType::INT2:
      return 2;
    default:
      return 8;
  }
}

std::vector<int64_t> ShapeOf(const Tensor& tensor) {
  const auto* dims = tensor.shape();
  const auto* signature = tensor.shape_signature();
  if (signature != nullptr && signature->size() > 0) dims = signature;
  if (dims == nullptr) return {};
  return std::vector<int64_t>(dims->begin(), dims->end());
}

bool HasRank(const Tensor& tensor) {
  return tensor.has_rank() ||
         (tensor.shape() != nullptr && tensor.shape()->size() > 0);
}

absl::Status CheckTensor(const Tensor& tensor, absl::string_view data) {
  const auto* shape = tensor.shape();
  const auto* signature = tensor.shape_signature();
  for (const auto* dims : {shape, signature}) {
    if (dims == nullptr) continue;
    if (dims->size() > kMaxRank) {
      return absl::InvalidArgumentError(
          absl::StrCat("its shape has ", dims->size(), " dimensions"));
    }
    for (const int32_t dim : *dims) {
      if (dim < -1) {
        return absl::InvalidArgumentError(
            absl::StrCat("its shape [", absl::StrJoin(*dims, ","),
                         "] has a negative dimension"));
      }
    }
  }
  if (signature != nullptr && signature->size() > 0 &&
      (shape == nullptr || shape->size() != signature->size())) {
    return absl::InvalidArgumentError(
        "its shape and its shape signature differ in rank");
  }
  if (tensor.external_buffer() != 0) {
    return absl::UnimplementedError(
        "its data are in a file beside the model; use a model that holds all "
        "of its data");
  }
  if (data.empty() || tensor.sparsity() != nullptr ||
      TypeOf(tensor) == tensorflow::DT_INVALID) {
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(const int64_t elements, ElementsOf(tensor));
  const int64_t size = static_cast<int64_t>(data.size());
  // Divided, because elements times bytes may overflow.
  if (elements > 8 * size + 7 || BytesFor(tensor, elements) != size) {
    return absl::InvalidArgumentError(
        absl::StrCat("its constant has ", size, " bytes, which do not fit ",
                     EnumNameTensorType(tensor.type()), "[",
                     absl::StrJoin(ShapeOf(tensor), ","), "]"));
  }
  return absl::OkStatus();
}

bool IsQuantized(const Tensor& tensor) {
  switch (tensor.type()) {
    case TensorType::INT8:
    case TensorType::UINT8:
    case TensorType::INT16:
    case TensorType::INT4:
    case TensorType::UINT4:
    case TensorType::INT2:
      break;
    default:
      return false;
  }
  const auto* parameters = tensor.quantization();
  if (parameters == nullptr) return false;
  return parameters->details_type() != QuantizationDetails::NONE ||
         (parameters->scale() != nullptr && parameters->scale()->size() > 0);
}

absl::StatusOr<Quantization> QuantizationOf(const Tensor& tensor) {
  const QuantizationParameters& parameters = *tensor.quantization();
  if (parameters.details_type() != QuantizationDetails::NONE) {
    return absl::UnimplementedError(absl::StrCat(
        "it is quantized by ",
        EnumNameQuantizationDetails(parameters.details_type()),
        ", which is not supported; quantize per tensor or per channel"));
  }
  Quantization quantization;
  const size_t count = parameters.scale()->size();
  const auto* zero_points = parameters.zero_point();
  const size_t zero_count = zero_points == nullptr ? 0 : zero_points->size();
  const std::vector<int64_t> shape = ShapeOf(tensor);
  if (count > 1) {
    const int axis = parameters.quantized_dimension();
    if (axis < 0 || axis >= static_cast<int>(shape.size()) ||
        shape[axis] != static_cast<int64_t>(count)) {
      return absl::InvalidArgumentError(
          absl::StrCat("it has ", count, " scales for dimension ", axis,
                       " of its shape [", absl::StrJoin(shape, ","), "]"));
    }
    quantization.axis = axis;
  }
  if (zero_count > 1 && zero_count != count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "it has ", count, " scales and ", zero_count, " zero points"));
  }
  for (size_t i = 0; i < count; ++i) {
    const float scale = parameters.scale()->Get(i);
    if (!std::isfinite(scale) || scale < 0) {
      return absl::InvalidArgumentError(absl::StrCat("its scale is ", scale));
    }
    int64_t zero = 0;
    if (zero_count > 0) zero = zero_points->Get(zero_count == 1 ? 0 : i);
    if (zero < std::numeric_limits<int32_t>::min() ||
        zero > std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat("its zero point is ", zero));
    }
    quantization.scale.push_back(scale);
    quantization.zero_point.push_back(zero);
  }
  return quantization;
}

absl::StatusOr<Constant> ReadConstant(const Tensor& tensor,
                                      absl::string_view data,
                                      int64_t max_bytes) {
  Constant constant;
  constant.type = TypeOf(tensor);
  constant.shape = ShapeOf(tensor);
  if (graph::ElementBytes(constant.type) == 0) {
    return absl::UnimplementedError(
        absl::StrCat("constants of type ", EnumNameTensorType(tensor.type()),
                     " are not supported"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const int64_t elements, ElementsOf(tensor));
  if (elements > max_bytes / graph::ElementBytes(constant.type)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("its ", elements, " elements take too much memory"));
  }
  std::string dense;
  if (tensor.sparsity() != nullptr) {
    if (IsPacked(tensor)) {
      return absl::UnimplementedError("sparse 4-bit values are not supported");
    }
    OPTFARM_ASSIGN_OR_RETURN(
        dense, ExpandSparse(*tensor.sparsity(), constant.shape,
                            graph::ElementBytes(constant.type), data));
    data = dense;
  }
  if (BytesFor(tensor, elements) != static_cast<int64_t>(data.size())) {
    return absl::InvalidArgumentError("it is constant, but has no data");
  }
  if (IsPacked(tensor)) {
    constant.bytes = Unpacked(data, elements, BitsOf(tensor),
                              constant.type == tensorflow::DT_INT8);
  } else {
    constant.bytes = std::string(data);
  }
  if (constant.type == tensorflow::DT_BOOL) {
    for (char& byte : constant.bytes) byte = byte != 0 ? 1 : 0;
  }
  return constant;
}

std::vector<int64_t> IntegersOf(const Constant& constant) {
  const auto read = [&](auto zero) {
    using T = decltype(zero);
    std::vector<int64_t> values(constant.bytes.size() / sizeof(T));
    for (size_t i = 0; i < values.size(); ++i) {
      T value;
      std::memcpy(&value, constant.bytes.data() + i * sizeof(T), sizeof(T));
      values[i] = static_cast<int64_t>(value);
    }
    return values;
  };
  switch (constant.type) {
    case tensorflow::DT_INT8:
      return read(int8_t{});
    case tensorflow::DT_UINT8:
      return read(uint8_t{});
    case tensorflow::DT_INT16:
      return read(int16_t{});
    case tensorflow::DT_INT32:
      return read(int32_t{});
    case tensorflow::DT_INT64:
      return read(int64_t{});
    default:
      return {};
  }
}

Constant Permuted(const Constant& constant, const std::vector<int>& order) {
  const int rank = static_cast<int>(order.size());
  Constant result;
  result.type = constant.type;
  std::vector<int64_t> stride(rank, 1), step(rank);
  for (int i = rank - 2; i >= 0; --i) {
    stride[i] = stride[i + 1] * constant.shape[i + 1];
  }
  for (int i = 0; i < rank; ++i) {
    result.shape.push_back(constant.shape[order[i]]);
    step[i] = stride[order[i]];
  }
  result.bytes.resize(constant.bytes.size());
  const int64_t size = graph::ElementBytes(constant.type);
  const int64_t count = static_cast<int64_t>(constant.bytes.size()) / size;
  std::vector<int64_t> index(rank, 0);
  int64_t from = 0;
  for (int64_t to = 0; to < count; ++to) {
    std::memcpy(result.bytes.data() + to * size,
                constant.bytes.data() + from * size, size);
    for (int i = rank - 1; i >= 0; --i) {
      from += step[i];
      if (++index[i] < result.shape[i]) break;
      from -= step[i] * result.shape[i];
      index[i] = 0;
    }
  }
  return result;
}

}  // namespace optfarm::tflite
