#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/api/guard.h"
#include "engine/api/handles.h"
#include "engine/graph/attr.h"

namespace optfarm::api {
namespace {

using runtime::Shape;
using runtime::Tensor;
using tensorflow::DataType;

constexpr int kMaxRank = 254;
// What kernels expect of memory.
constexpr uintptr_t kAlignment = 64;

absl::StatusOr<DataType> ToDataType(optfarm_dtype dtype) {
  const int number = static_cast<int>(dtype);
  const auto type = static_cast<DataType>(number);
  if (!tensorflow::DataType_IsValid(number) ||
      (type != tensorflow::DT_STRING && runtime::ElementSize(type) == 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor cannot be made of type number ", number));
  }
  return type;
}

absl::StatusOr<Shape> ToShape(const int64_t* dims, int32_t rank) {
  if (rank < 0 || rank > kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor of rank ", rank, "; ranks are 0 to ", kMaxRank));
  }
  if (rank > 0 && dims == nullptr) return MissingArgument("dims");
  return Shape::FromDims(absl::MakeConstSpan(dims, rank));
}

// Type and shape of memory of `size` bytes. ERRORS: for strings and for a size
// that does not fit.
absl::StatusOr<std::pair<DataType, Shape>> CheckMemory(optfarm_dtype dtype,
                                                       const int64_t* dims,
                                                       int32_t rank,
                                                       const void* data,
                                                       size_t size) {
  OPTFARM_ASSIGN_OR_RETURN(const DataType type, ToDataType(dtype));
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, ToShape(dims, rank));
  if (type == tensorflow::DT_STRING) {
    return absl::InvalidArgumentError(
        "strings are no plain memory; use optfarm_tensor_strings");
  }
  int64_t wanted = 0;
  if (__builtin_mul_overflow(shape.num_elements(),
                             static_cast<int64_t>(runtime::ElementSize(type)),
                             &wanted) ||
      static_cast<uint64_t>(wanted) != size) {
    return absl::InvalidArgumentError(absl::StrCat(
        size, " bytes for a ", graph::DataTypeName(type), " tensor of shape ",
        shape.ToString(), ", which has ", shape.num_elements(), " elements of ",
        runtime::ElementSize(type), " bytes"));
  }
  if (size > 0 && data == nullptr) return MissingArgument("data");
  return std::make_pair(type, shape);
}

absl::StatusOr<Tensor> Copy(DataType type, const Shape& shape, const void* data,
                            size_t size) {
  OPTFARM_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(type, shape));
  if (type == tensorflow::DT_BOOL) {
    // A bool that is neither 0 nor 1 means anything to a compiler.
    const auto* bytes = static_cast<const uint8_t*>(data);
    for (size_t i = 0; i < size; ++i) tensor.data<bool>()[i] = bytes[i] != 0;
  } else if (size > 0) {
    std::memcpy(tensor.raw(), data, size);
  }
  return tensor;
}

void Give(Tensor value, optfarm_tensor** tensor) {
  *tensor = new optfarm_tensor{std::move(value)};
}

// The caller's memory: calls `release` when the last tensor over it goes.
class BorrowedMemory {
 public:
  BorrowedMemory(void (*release)(void*), void* context)
      : release_(release), context_(context) {}
  ~BorrowedMemory() {
    if (armed_ && release_ != nullptr) release_(context_);
  }
  BorrowedMemory(const BorrowedMemory&) = delete;
  BorrowedMemory& operator=(const BorrowedMemory&) = delete;
  // From now on the memory is ours to give back.
  void Arm() { armed_ = true; }

 private:
  void (*release_)(void*);
  void* context_;
  bool armed_ = false;
};

absl::Status Borrow(DataType type, const Shape& shape, const void* data,
                    size_t size, void (*release)(void*), void* context,
                    optfarm_tensor** tensor) {
  const auto memory = std::make_shared<BorrowedMemory>(release, context);
  const bool aligned = reinterpret_cast<uintptr_t>(data) % kAlignment == 0;
  if (aligned && type != tensorflow::DT_BOOL && size > 0) {
    Give(Tensor::View(type, shape, data, memory), tensor);
  } else {
    OPTFARM_ASSIGN_OR_RETURN(Tensor copy, Copy(type, shape, data, size));
    Give(std::move(copy), tensor);
  }
  memory->Arm();
  return absl::OkStatus();
}

bool IsPlain(const optfarm_tensor* tensor) {
  return tensor != nullptr && tensor->value.has_value() &&
         runtime::ElementSize(tensor->value.dtype()) > 0 &&
         tensor->value.num_elements() > 0;
}

}  // namespace
}  // namespace optfarm::api

using optfarm::api::Guard;
using optfarm::api::MissingArgument;

extern "C" {

const char* optfarm_dtype_name(optfarm_dtype dtype) {
  switch (dtype) {
#define OPTFARM_NAME(number, name) \
  case number:                     \
    return name
    OPTFARM_NAME(OPTFARM_FLOAT, "float");
    OPTFARM_NAME(OPTFARM_DOUBLE, "double");
    OPTFARM_NAME(OPTFARM_INT32, "int32");
    OPTFARM_NAME(OPTFARM_UINT8, "uint8");
    OPTFARM_NAME(OPTFARM_INT16, "int16");
    OPTFARM_NAME(OPTFARM_INT8, "int8");
    OPTFARM_NAME(OPTFARM_STRING, "string");
    OPTFARM_NAME(OPTFARM_COMPLEX64, "complex64");
    OPTFARM_NAME(OPTFARM_INT64, "int64");
    OPTFARM_NAME(OPTFARM_BOOL, "bool");
    OPTFARM_NAME(OPTFARM_QINT8, "qint8");
    OPTFARM_NAME(OPTFARM_QUINT8, "quint8");
    OPTFARM_NAME(OPTFARM_QINT32, "qint32");
    OPTFARM_NAME(OPTFARM_BFLOAT16, "bfloat16");
    OPTFARM_NAME(OPTFARM_QINT16, "qint16");
    OPTFARM_NAME(OPTFARM_QUINT16, "quint16");
    OPTFARM_NAME(OPTFARM_UINT16, "uint16");
    OPTFARM_NAME(OPTFARM_COMPLEX128, "complex128");
    OPTFARM_NAME(OPTFARM_HALF, "half");
    OPTFARM_NAME(OPTFARM_UINT32, "uint32");
    OPTFARM_NAME(OPTFARM_UINT64, "uint64");
#undef OPTFARM_NAME
    default:
      return "unknown";
  }
}

size_t optfarm_dtype_size(optfarm_dtype dtype) {
  return optfarm::runtime::ElementSize(
      static_cast<tensorflow::DataType>(static_cast<int>(dtype)));
}

optfarm_status* optfarm_tensor_create(optfarm_dtype dtype, const int64_t* dims,
                                      int32_t rank, optfarm_tensor** tensor) {
  return Guard([&]() -> absl::Status {
    if (tensor == nullptr) return MissingArgument("tensor");
    OPTFARM_ASSIGN_OR_RETURN(const auto type, optfarm::api::ToDataType(dtype));
    OPTFARM_ASSIGN_OR_RETURN(const auto shape,
                             optfarm::api::ToShape(dims, rank));
    OPTFARM_ASSIGN_OR_RETURN(auto value,
                             optfarm::runtime::Tensor::Zeros(type, shape));
    optfarm::api::Give(std::move(value), tensor);
    return absl::OkStatus();
  });
}

optfarm_status* optfarm_tensor_copy(optfarm_dtype dtype, const int64_t* dims,
                                    int32_t rank, const void* data, size_t size,
                                    optfarm_tensor** tensor) {
  return Guard([&]() -> absl::Status {
    if (tensor == nullptr) return MissingArgument("tensor");
    OPTFARM_ASSIGN_OR_RETURN(
        const auto memory,
        optfarm::api::CheckMemory(dtype, dims, rank, data, size));
    OPTFARM_ASSIGN_OR_RETURN(
        auto value,
        optfarm::api::Copy(memory.first, memory.second, data, size));
    optfarm::api::Give(std::move(value), tensor);
    return absl::OkStatus();
  });
}

optfarm_status* optfarm_tensor_borrow(optfarm_dtype dtype, const int64_t* dims,
                                      int32_t rank, const void* data,
                                      size_t size,
                                      void (*release)(void* context),
                                      void* context, optfarm_tensor** tensor) {
  return Guard([&]() -> absl::Status {
    if (tensor == nullptr) return MissingArgument("tensor");
    OPTFARM_ASSIGN_OR_RETURN(
        const auto memory,
        optfarm::api::CheckMemory(dtype, dims, rank, data, size));
    return optfarm::api::Borrow(memory.first, memory.second, data, size,
                                release, context, tensor);
  });
}

optfarm_status* optfarm_tensor_strings(const int64_t* dims, int32_t rank,
                                       const char* const* strings,
                                       const size_t* lengths,
                                       optfarm_tensor** tensor) {
  return Guard([&]() -> absl::Status {
    if (tensor == nullptr) return MissingArgument("tensor");
    OPTFARM_ASSIGN_OR_RETURN(const auto shape,
                             optfarm::api::ToShape(dims, rank));
    if (strings == nullptr && shape.num_elements() > 0) {
      return MissingArgument("strings");
    }
    OPTFARM_ASSIGN_OR_RETURN(auto value, optfarm::runtime::Tensor::Allocate(
                                             tensorflow::DT_STRING, shape));
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      if (strings[i] == nullptr) return MissingArgument("strings[i]");
      value.data<std::string>()[i].assign(
          strings[i],
          lengths != nullptr ? lengths[i] : std::strlen(strings[i]));
    }
    optfarm::api::Give(std::move(value), tensor);
    return absl::OkStatus();
  });
}

optfarm_dtype optfarm_tensor_dtype(const optfarm_tensor* tensor) {
  return tensor == nullptr ? OPTFARM_UNKNOWN_TYPE
                           : static_cast<optfarm_dtype>(tensor->value.dtype());
}

int32_t optfarm_tensor_rank(const optfarm_tensor* tensor) {
  return tensor == nullptr ? 0 : tensor->value.rank();
}

const int64_t* optfarm_tensor_dims(const optfarm_tensor* tensor) {
  if (tensor == nullptr || tensor->value.rank() == 0) return nullptr;
  return tensor->value.shape().dims().data();
}

int64_t optfarm_tensor_element_count(const optfarm_tensor* tensor) {
  if (tensor == nullptr || !tensor->value.has_value()) return 0;
  return tensor->value.num_elements();
}

int64_t optfarm_tensor_byte_size(const optfarm_tensor* tensor) {
  if (tensor == nullptr || !tensor->value.has_value()) return 0;
  return tensor->value.TotalBytes();
}

const void* optfarm_tensor_data(const optfarm_tensor* tensor) {
  return optfarm::api::IsPlain(tensor) ? tensor->value.raw() : nullptr;
}

void* optfarm_tensor_mutable_data(optfarm_tensor* tensor) {
  if (!optfarm::api::IsPlain(tensor) || !tensor->value.IsSoleOwner()) {
    return nullptr;
  }
  return tensor->value.raw();
}

optfarm_status* optfarm_tensor_string(const optfarm_tensor* tensor,
                                      int64_t index, const char** bytes,
                                      size_t* length) {
  return Guard([&]() -> absl::Status {
    if (tensor == nullptr) return MissingArgument("tensor");
    if (bytes == nullptr) return MissingArgument("bytes");
    if (length == nullptr) return MissingArgument("length");
    const optfarm::runtime::Tensor& value = tensor->value;
    if (value.dtype() != tensorflow::DT_STRING) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the tensor is of type ", optfarm::graph::DataTypeName(value.dtype()),
          ", not string"));
    }
    if (index < 0 || index >= value.num_elements()) {
      return absl::OutOfRangeError(
          absl::StrCat("element ", index, " of a tensor of ",
                       value.num_elements(), " strings"));
    }
    const std::string& text = value.data<std::string>()[index];
    *bytes = text.data();
    *length = text.size();
    return absl::OkStatus();
  });
}

void optfarm_tensor_delete(optfarm_tensor* tensor) { delete tensor; }

}  // extern "C"
