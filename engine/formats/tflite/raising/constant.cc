// Decoding, permuting and converting the elements of constants.

#include "engine/formats/tflite/raising/constant.h"

#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/tensor_proto.h"

namespace optfarm::formats::tflite_raising {
namespace {

using tensorflow::TensorProto;

template <typename T, typename List>
std::string RepeatLast(const List& list, int64_t count) {
  std::string bytes(static_cast<size_t>(count) * sizeof(T), '\0');
  T value = T();
  for (int64_t i = 0; i < count; ++i) {
    if (i < list.size()) value = static_cast<T>(list.Get(static_cast<int>(i)));
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
  return bytes;
}

absl::StatusOr<std::string> ListedBytes(const TensorProto& tensor,
                                        int64_t count) {
  switch (tensor.dtype()) {
    case tensorflow::DT_FLOAT:
      return RepeatLast<float>(tensor.float_val(), count);
    case tensorflow::DT_DOUBLE:
      return RepeatLast<double>(tensor.double_val(), count);
    case tensorflow::DT_HALF:
    case tensorflow::DT_BFLOAT16:
      return RepeatLast<uint16_t>(tensor.half_val(), count);
    case tensorflow::DT_INT64:
      return RepeatLast<int64_t>(tensor.int64_val(), count);
    case tensorflow::DT_UINT32:
      return RepeatLast<uint32_t>(tensor.uint32_val(), count);
    case tensorflow::DT_UINT64:
      return RepeatLast<uint64_t>(tensor.uint64_val(), count);
    case tensorflow::DT_BOOL:
      return RepeatLast<uint8_t>(tensor.bool_val(), count);
    default:
      break;
  }
  switch (graph::ElementBytes(tensor.dtype())) {
    case 1:
      return RepeatLast<uint8_t>(tensor.int_val(), count);
    case 2:
      return RepeatLast<uint16_t>(tensor.int_val(), count);
    case 4:
      return RepeatLast<uint32_t>(tensor.int_val(), count);
    default:
      return absl::UnimplementedError(absl::StrCat(
          "constants of type ", graph::DataTypeName(tensor.dtype()),
          " have no plain elements"));
  }
}

template <typename T>
T ElementAt(const Constant& constant, int64_t i) {
  T value;
  std::memcpy(&value, constant.bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

// Number of elements behind each dimension.
std::vector<int64_t> Strides(absl::Span<const int64_t> dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * dims[i];
  }
  return strides;
}

template <typename T>
std::string PermutedBytes(const Constant& constant,
                          absl::Span<const int64_t> dims,
                          absl::Span<const int64_t> source_strides) {
  std::string out(constant.bytes.size(), '\0');
  std::vector<int64_t> index(dims.size(), 0);
  int64_t source = 0;
  const int64_t count = constant.elements();
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(out.data() + i * sizeof(T),
                constant.bytes.data() + source * sizeof(T), sizeof(T));
    for (size_t d = dims.size(); d-- > 0;) {
      source += source_strides[d];
      if (++index[d] < dims[d]) break;
      source -= source_strides[d] * dims[d];
      index[d] = 0;
    }
  }
  return out;
}

}  // namespace

int64_t Constant::elements() const {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return count;
}

int Constant::channel_axis() const {
  if (scale.size() < 2) return 0;
  int64_t stride = 1;
  for (int d = static_cast<int>(dims.size()) - 1; d >= 0; --d) {
    if (stride == channel_stride &&
        dims[d] == static_cast<int64_t>(scale.size())) {
      return d;
    }
    stride *= dims[d];
  }
  return -1;
}

absl::StatusOr<Constant> DecodeConstant(const TensorProto& tensor) {
  OPTFARM_RETURN_IF_ERROR(graph::CheckTensorProto(tensor));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t count,
                           graph::ElementCount(tensor.tensor_shape()));
  Constant constant;
  constant.dtype = tensor.dtype();
  for (const auto& dim : tensor.tensor_shape().dim()) {
    constant.dims.push_back(dim.size());
  }
  const int64_t element = graph::ElementBytes(tensor.dtype());
  if (element > 0 &&
      static_cast<int64_t>(tensor.tensor_content().size()) == count * element) {
    constant.bytes = tensor.tensor_content();
    return constant;
  }
  OPTFARM_ASSIGN_OR_RETURN(constant.bytes, ListedBytes(tensor, count));
  return constant;
}

absl::Status SetScales(std::vector<float> scale,
                       std::vector<int64_t> zero_point, int axis,
                       Constant* constant) {
  if (scale.empty() || scale.size() != zero_point.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", scale.size(), " scales and ",
                     zero_point.size(), " zero points"));
  }
  constant->channel_stride = 1;
  if (scale.size() > 1) {
    const int rank = static_cast<int>(constant->dims.size());
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank ||
        constant->dims[axis] != static_cast<int64_t>(scale.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("there are ", scale.size(), " scales for axis ", axis,
                       " of shape [", absl::StrJoin(constant->dims, ","), "]"));
    }
    constant->channel_stride = Strides(constant->dims)[axis];
  }
  constant->scale = std::move(scale);
  constant->zero_point = std::move(zero_point);
  return absl::OkStatus();
}

absl::StatusOr<Constant> Transposed(const Constant& constant,
                                    absl::Span<const int64_t> order) {
  const size_t rank = constant.dims.size();
  std::vector<bool> seen(rank, false);
  bool is_permutation = order.size() == rank;
  for (int64_t axis : order) {
    is_permutation = is_permutation && axis >= 0 &&
                     axis < static_cast<int64_t>(rank) && !seen[axis];
    if (!is_permutation) break;
    seen[axis] = true;
  }
  if (!is_permutation) {
    return absl::InvalidArgumentError(
        absl::StrCat("[", absl::StrJoin(order, ","), "] does not permute ",
                     rank, " dimensions"));
  }
  const std::vector<int64_t> strides = Strides(constant.dims);
  Constant result = constant;
  std::vector<int64_t> source_strides(rank);
  const int channel_axis = constant.channel_axis();
  int new_axis = 0;
  for (size_t i = 0; i < rank; ++i) {
    result.dims[i] = constant.dims[order[i]];
    source_strides[i] = strides[order[i]];
    if (order[i] == channel_axis) new_axis = static_cast<int>(i);
  }
  if (constant.scale.size() > 1) {
    if (channel_axis < 0) {
      return absl::UnimplementedError(
          "its scales do not belong to one dimension");
    }
    result.channel_stride = Strides(result.dims)[new_axis];
  }
  switch (graph::ElementBytes(constant.dtype)) {
    case 1:
      result.bytes =
          PermutedBytes<uint8_t>(constant, result.dims, source_strides);
      break;
    case 2:
      result.bytes =
          PermutedBytes<uint16_t>(constant, result.dims, source_strides);
      break;
    case 4:
      result.bytes =
          PermutedBytes<uint32_t>(constant, result.dims, source_strides);
      break;
    case 8:
      result.bytes =
          PermutedBytes<uint64_t>(constant, result.dims, source_strides);
      break;
    default:
      return absl::UnimplementedError(
          absl::StrCat("constants of type ",
                       graph::DataTypeName(constant.dtype), " are not moved"));
  }
  return result;
}

absl::Status Reshape(std::vector<int64_t> dims, Constant* constant) {
  int64_t count = 1;
  for (int64_t dim : dims) {
    if (dim < 0 || __builtin_mul_overflow(count, dim, &count)) count = -1;
    if (count < 0) break;
  }
  if (count != constant->elements()) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape [", absl::StrJoin(dims, ","), "] does not hold ",
                     constant->elements(), " elements"));
  }
  constant->dims = std::move(dims);
  return absl::OkStatus();
}

void ShiftToSigned(Constant* constant) {
  constant->dtype = tensorflow::DT_INT8;
  for (char& byte : constant->bytes) byte = static_cast<char>(byte ^ 0x80);
  for (int64_t& zero_point : constant->zero_point) zero_point -= 128;
}

absl::StatusOr<std::vector<float>> RealValues(const Constant& constant) {
  const int64_t count = constant.elements();
  std::vector<float> values(count);
  if (constant.is_quantized()) {
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> stored,
                             WholeNumbers(constant));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t channel = constant.channel_of(i);
      values[i] = static_cast<float>(stored[i] - constant.zero_point[channel]) *
                  constant.scale[channel];
    }
    return values;
  }
  for (int64_t i = 0; i < count; ++i) {
    switch (constant.dtype) {
      case tensorflow::DT_FLOAT:
        values[i] = ElementAt<float>(constant, i);
        break;
      case tensorflow::DT_DOUBLE:
        values[i] = static_cast<float>(ElementAt<double>(constant, i));
        break;
      case tensorflow::DT_HALF:
        values[i] = FloatFromHalf(ElementAt<uint16_t>(constant, i));
        break;
      case tensorflow::DT_BFLOAT16:
        values[i] = std::bit_cast<float>(
            static_cast<uint32_t>(ElementAt<uint16_t>(constant, i)) << 16);
        break;
      default:
        return absl::UnimplementedError(absl::StrCat(
            "a constant of type ", graph::DataTypeName(constant.dtype),
            " stands where real numbers are expected"));
    }
  }
  return values;
}

Constant FloatConstant(std::vector<int64_t> dims,
                       absl::Span<const float> values) {
  Constant constant;
  constant.dtype = tensorflow::DT_FLOAT;
  constant.dims = std::move(dims);
  constant.bytes.assign(reinterpret_cast<const char*>(values.data()),
                        values.size() * sizeof(float));
  return constant;
}

absl::StatusOr<std::vector<int64_t>> WholeNumbers(const Constant& constant) {
  const int64_t count = constant.elements();
  std::vector<int64_t> values(count);
  for (int64_t i = 0; i < count; ++i) {
    switch (constant.dtype) {
      case tensorflow::DT_BOOL:
      case tensorflow::DT_UINT8:
      case tensorflow::DT_QUINT8:
        values[i] = ElementAt<uint8_t>(constant, i);
        break;
      case tensorflow::DT_INT8:
      case tensorflow::DT_QINT8:
        values[i] = ElementAt<int8_t>(constant, i);
        break;
      case tensorflow::DT_INT16:
      case tensorflow::DT_QINT16:
        values[i] = ElementAt<int16_t>(constant, i);
        break;
      case tensorflow::DT_UINT16:
      case tensorflow::DT_QUINT16:
        values[i] = ElementAt<uint16_t>(constant, i);
        break;
      case tensorflow::DT_INT32:
      case tensorflow::DT_QINT32:
        values[i] = ElementAt<int32_t>(constant, i);
        break;
      case tensorflow::DT_UINT32:
        values[i] = ElementAt<uint32_t>(constant, i);
        break;
      case tensorflow::DT_INT64:
        values[i] = ElementAt<int64_t>(constant, i);
        break;
      default:
        return absl::InvalidArgumentError(absl::StrCat(
            "a constant of type ", graph::DataTypeName(constant.dtype),
            " stands where whole numbers are expected"));
    }
  }
  return values;
}

uint16_t HalfFromFloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;  // NaN
  if (magnitude >= 0x47800000) return sign | 0x7c00;
  if (magnitude < 0x38800000) {
    // Adding 0.5 leaves the result's bits, correctly rounded, at the bottom.
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(rounded) -
                                        std::bit_cast<uint32_t>(0.5f));
  }
  const uint32_t odd = (magnitude >> 13) & 1;
  return sign |
         static_cast<uint16_t>((magnitude - 0x38000000 + 0xfff + odd) >> 13);
}

float FloatFromHalf(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f;
  const uint32_t mantissa = half & 0x3ff;
  if (exponent == 0x1f) {
    return std::bit_cast<float>(sign | 0x7f800000 | (mantissa << 13));
  }
  if (exponent == 0) {
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -value : value;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) |
                              (mantissa << 13));
}

}  // namespace optfarm::formats::tflite_raising
