// Running one piece of generic code for the element type of a dtype. A visitor
// is a generic lambda that takes a std::type_identity:
//   return VisitNumber(dtype, "x", [&](auto tag) -> absl::Status {
//     using T = typename decltype(tag)::type; ...

#ifndef OPTFARM_ENGINE_RUNTIME_KERNELS_DTYPE_SWITCH_H_
#define OPTFARM_ENGINE_RUNTIME_KERNELS_DTYPE_SWITCH_H_

#include <complex>
#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/runtime/kernels/arguments.h"
#include "engine/runtime/tensor.h"

namespace optfarm::runtime {

// The dtypes that VisitNumber knows; for RequireTypeAttr.
#define OPTFARM_NUMBER_TYPES                                                \
  {                                                                         \
    tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE, tensorflow::DT_INT8,       \
        tensorflow::DT_INT16, tensorflow::DT_INT32, tensorflow::DT_INT64,   \
        tensorflow::DT_UINT8, tensorflow::DT_UINT16, tensorflow::DT_UINT32, \
        tensorflow::DT_UINT64                                               \
  }

// float, double and the plain integers.
// ERRORS: Unimplemented naming `name` for other dtypes; else the visitor's.
template <typename Visitor>
absl::Status VisitNumber(DataType dtype, absl::string_view name,
                         Visitor visit) {
  switch (dtype) {
    case tensorflow::DT_FLOAT:
      return visit(std::type_identity<float>());
    case tensorflow::DT_DOUBLE:
      return visit(std::type_identity<double>());
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

// Any dtype with elements, by size alone: for kernels that only move elements.
// T is an unsigned integer, a 16-byte type, or std::string.
template <typename Visitor>
absl::Status VisitBySize(DataType dtype, absl::string_view name,
                         Visitor visit) {
  if (dtype == tensorflow::DT_STRING) {
    return visit(std::type_identity<std::string>());
  }
  switch (ElementSize(dtype)) {
    case 1:
      return visit(std::type_identity<uint8_t>());
    case 2:
      return visit(std::type_identity<uint16_t>());
    case 4:
      return visit(std::type_identity<uint32_t>());
    case 8:
      return visit(std::type_identity<uint64_t>());
    case 16:
      return visit(std::type_identity<std::complex<double>>());
    default:
      return UnsupportedDtype(name, dtype);
  }
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_KERNELS_DTYPE_SWITCH_H_
