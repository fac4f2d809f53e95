// Running one piece of generic code for the element type of a dtype. A visitor
// is a generic lambda that takes a std::type_identity:
//   return VisitNumber(dtype, "x", [&](auto tag) -> absl::Status {
//     using T = typename decltype(tag)::type; ...

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_DTYPE_SWITCH_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_DTYPE_SWITCH_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/runtime/core/kernel_selection.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/reference/arguments.h"

namespace optfarm::runtime {

// The dtypes that VisitNumber knows; for RequireTypeAttr.
#define OPTFARM_NUMBER_TYPES                                                \
  {                                                                         \
    tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE, tensorflow::DT_INT8,       \
        tensorflow::DT_INT16, tensorflow::DT_INT32, tensorflow::DT_INT64,   \
        tensorflow::DT_UINT8, tensorflow::DT_UINT16, tensorflow::DT_UINT32, \
        tensorflow::DT_UINT64                                               \
  }

#define OPTFARM_FLOAT_TYPES \
  { tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE }
#define OPTFARM_COMPLEX_TYPES \
  { tensorflow::DT_COMPLEX64, tensorflow::DT_COMPLEX128 }
#define OPTFARM_FLOAT_AND_COMPLEX_TYPES                                    \
  {                                                                        \
    tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE, tensorflow::DT_COMPLEX64, \
        tensorflow::DT_COMPLEX128                                          \
  }
#define OPTFARM_INTEGER_TYPES                                              \
  {                                                                        \
    tensorflow::DT_INT8, tensorflow::DT_INT16, tensorflow::DT_INT32,       \
        tensorflow::DT_INT64, tensorflow::DT_UINT8, tensorflow::DT_UINT16, \
        tensorflow::DT_UINT32, tensorflow::DT_UINT64                       \
  }
#define OPTFARM_INDEX_TYPES \
  { tensorflow::DT_INT32, tensorflow::DT_INT64 }
#define OPTFARM_NUMBER_AND_COMPLEX_TYPES                                    \
  {                                                                         \
    tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE, tensorflow::DT_INT8,       \
        tensorflow::DT_INT16, tensorflow::DT_INT32, tensorflow::DT_INT64,   \
        tensorflow::DT_UINT8, tensorflow::DT_UINT16, tensorflow::DT_UINT32, \
        tensorflow::DT_UINT64, tensorflow::DT_COMPLEX64,                    \
        tensorflow::DT_COMPLEX128                                           \
  }

// The visitors below return Unimplemented naming `name` for dtypes that they
// do not know; else what the visitor returns.

template <typename Visitor>
absl::Status VisitFloat(DataType dtype, absl::string_view name, Visitor visit) {
  if (dtype == tensorflow::DT_FLOAT) return visit(std::type_identity<float>());
  if (dtype == tensorflow::DT_DOUBLE) {
    return visit(std::type_identity<double>());
  }
  return UnsupportedDtype(name, dtype);
}

template <typename Visitor>
absl::Status VisitComplex(DataType dtype, absl::string_view name,
                          Visitor visit) {
  if (dtype == tensorflow::DT_COMPLEX64) {
    return visit(std::type_identity<std::complex<float>>());
  }
  if (dtype == tensorflow::DT_COMPLEX128) {
    return visit(std::type_identity<std::complex<double>>());
  }
  return UnsupportedDtype(name, dtype);
}

template <typename Visitor>
absl::Status VisitInteger(DataType dtype, absl::string_view name,
                          Visitor visit) {
  switch (dtype) {
    case tensorflow::DT_INT8:
      return visit(std::type_identity<int8_t>());
    case tensorflow::DT_INT16:
      return visit(std::type_identity<int16_t>());
    case tensorflow::DT_INT32:
      return visit(std::type_identity<int32_t>());
    case tensorflow::DT_INT64:
      return visit(std::type_identity<int64_t>());
    case tensorflow::DT_UINT8:
      return visit(std::type_identity<uint8_t>());
    case tensorflow::DT_UINT16:
      return visit(std::type_identity<uint16_t>());
    case tensorflow::DT_UINT32:
      return visit(std::type_identity<uint32_t>());
    case tensorflow::DT_UINT64:
      return visit(std::type_identity<uint64_t>());
    default:
      return UnsupportedDtype(name, dtype);
  }
}

// float, double and the plain integers.
// ERRORS: Unimplemented naming `name` for other dtypes; else the visitor's.
template <typename Visitor>
absl::Status VisitNumber(DataType dtype, absl::string_view name,
                         Visitor visit) {
#define OPTFARM_VISIT(type)                                                  \
  case tensorflow::type:                                                     \
    if constexpr (IsTypeSelected(tensorflow::type)) {                        \
      return visit(std::type_identity<ElementOf<tensorflow::type>::Type>()); \
    }                                                                        \
    break
  switch (dtype) {
    OPTFARM_VISIT(DT_FLOAT);
    OPTFARM_VISIT(DT_DOUBLE);
    OPTFARM_VISIT(DT_INT8);
    OPTFARM_VISIT(DT_INT16);
    OPTFARM_VISIT(DT_INT32);
    OPTFARM_VISIT(DT_INT64);
    OPTFARM_VISIT(DT_UINT8);
    OPTFARM_VISIT(DT_UINT16);
    OPTFARM_VISIT(DT_UINT32);
    OPTFARM_VISIT(DT_UINT64);
    default:
      break;
  }
#undef OPTFARM_VISIT
  return UnsupportedDtype(name, dtype);
}

template <typename Visitor>
absl::Status VisitNumberOrComplex(DataType dtype, absl::string_view name,
                                  Visitor visit) {
  if (dtype == tensorflow::DT_COMPLEX64 || dtype == tensorflow::DT_COMPLEX128) {
    return VisitComplex(dtype, name, visit);
  }
  return VisitNumber(dtype, name, visit);
}

// Any dtype with elements, by size alone: for kernels that only move elements.
// T is an unsigned integer, a 16-byte type, or std::string.
template <typename Visitor>
absl::Status VisitBySize(DataType dtype, absl::string_view name,
                         Visitor visit) {
  if constexpr (IsTypeSelected(tensorflow::DT_STRING)) {
    if (dtype == tensorflow::DT_STRING) {
      return visit(std::type_identity<std::string>());
    }
  }
  const size_t bytes = ElementSize(dtype);
  if constexpr (IsAnySelected(tensorflow::DT_INT8, tensorflow::DT_UINT8,
                              tensorflow::DT_BOOL, tensorflow::DT_QINT8,
                              tensorflow::DT_QUINT8)) {
    if (bytes == 1) return visit(std::type_identity<uint8_t>());
  }
  if constexpr (IsAnySelected(tensorflow::DT_INT16, tensorflow::DT_UINT16,
                              tensorflow::DT_HALF, tensorflow::DT_BFLOAT16,
                              tensorflow::DT_QINT16, tensorflow::DT_QUINT16)) {
    if (bytes == 2) return visit(std::type_identity<uint16_t>());
  }
  if constexpr (IsAnySelected(tensorflow::DT_FLOAT, tensorflow::DT_INT32,
                              tensorflow::DT_UINT32, tensorflow::DT_QINT32)) {
    if (bytes == 4) return visit(std::type_identity<uint32_t>());
  }
  if constexpr (IsAnySelected(tensorflow::DT_DOUBLE, tensorflow::DT_INT64,
                              tensorflow::DT_UINT64,
                              tensorflow::DT_COMPLEX64)) {
    if (bytes == 8) return visit(std::type_identity<uint64_t>());
  }
  if constexpr (IsTypeSelected(tensorflow::DT_COMPLEX128)) {
    if (bytes == 16) return visit(std::type_identity<std::complex<double>>());
  }
  return UnsupportedDtype(name, dtype);
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_DTYPE_SWITCH_H_
