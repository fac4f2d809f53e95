// Which kernels and dtypes this build has. A normal build has all; one that is
// configured with OPTFARM_KERNELS_FILE (cmake/kernel_selection.cmake, written
// by `optctl graph required-ops --list`) only those that the file
// names. The compiler then sees that a kernel is never added and drops its
// code.

#ifndef OPTFARM_ENGINE_RUNTIME_CORE_KERNEL_SELECTION_H_
#define OPTFARM_ENGINE_RUNTIME_CORE_KERNEL_SELECTION_H_

#include <cstddef>
#include <string_view>

#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::runtime {

// Whether `word` is one of the words, separated by single blanks, of `list`.
constexpr bool IsListed(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const size_t end = list.find(' ');
    if (list.substr(0, end) == word) return true;
    if (end == std::string_view::npos) return false;
    list.remove_prefix(end + 1);
  }
  return false;
}

// The name by which a file of kernels selects a dtype; "" for none.
constexpr std::string_view SelectionName(tensorflow::DataType dtype) {
  switch (dtype) {
    case tensorflow::DT_FLOAT:
      return "float";
    case tensorflow::DT_DOUBLE:
      return "double";
    case tensorflow::DT_INT8:
      return "int8";
    case tensorflow::DT_INT16:
      return "int16";
    case tensorflow::DT_INT32:
      return "int32";
    case tensorflow::DT_INT64:
      return "int64";
    case tensorflow::DT_UINT8:
      return "uint8";
    case tensorflow::DT_UINT16:
      return "uint16";
    case tensorflow::DT_UINT32:
      return "uint32";
    case tensorflow::DT_UINT64:
      return "uint64";
    case tensorflow::DT_BOOL:
      return "bool";
    case tensorflow::DT_STRING:
      return "string";
    case tensorflow::DT_HALF:
      return "half";
    case tensorflow::DT_BFLOAT16:
      return "bfloat16";
    case tensorflow::DT_COMPLEX64:
      return "complex64";
    case tensorflow::DT_COMPLEX128:
      return "complex128";
    case tensorflow::DT_QINT8:
      return "qint8";
    case tensorflow::DT_QUINT8:
      return "quint8";
    case tensorflow::DT_QINT16:
      return "qint16";
    case tensorflow::DT_QUINT16:
      return "quint16";
    case tensorflow::DT_QINT32:
      return "qint32";
    default:
      return "";
  }
}

#ifdef OPTFARM_KERNEL_OPS
constexpr bool IsOpSelected(std::string_view op) {
  return IsListed(OPTFARM_KERNEL_OPS, op);
}
constexpr bool IsTypeSelected(tensorflow::DataType dtype) {
  // Half precision computes in float.
  if (dtype == tensorflow::DT_FLOAT &&
      (IsListed(OPTFARM_KERNEL_TYPES, "half") ||
       IsListed(OPTFARM_KERNEL_TYPES, "bfloat16"))) {
    return true;
  }
  return IsListed(OPTFARM_KERNEL_TYPES, SelectionName(dtype));
}
#else
constexpr bool IsOpSelected(std::string_view) { return true; }
constexpr bool IsTypeSelected(tensorflow::DataType) { return true; }
#endif

// Whether one of the dtypes is selected.
template <typename... DataTypes>
constexpr bool IsAnySelected(DataTypes... dtypes) {
  return (IsTypeSelected(dtypes) || ...);
}

// An op's name that is known when the compiler runs, with the answer to
// whether it is selected.
class OpLiteral {
 public:
  // Implicit, so that a call with a literal takes it.
  consteval OpLiteral(const char* name)
      : name_(name), is_selected_(IsOpSelected(name)) {}

  constexpr std::string_view name() const { return name_; }
  constexpr bool is_selected() const { return is_selected_; }

 private:
  std::string_view name_;
  bool is_selected_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_CORE_KERNEL_SELECTION_H_
