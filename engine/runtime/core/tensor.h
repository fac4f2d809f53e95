// A dense tensor: dtype, shape, and a shared buffer. Strings are elements of
// type std::string. Quantized dtypes are stored as the integers that code them
// (quint8 as uint8_t, qint32 as int32_t).

#ifndef OPTFARM_ENGINE_RUNTIME_CORE_TENSOR_H_
#define OPTFARM_ENGINE_RUNTIME_CORE_TENSOR_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/check.h"
#include "engine/graph/tensor_proto.h"
#include "engine/runtime/core/resource.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::runtime {

using tensorflow::DataType;

// A fully known shape whose element count fits into int64_t.
class Shape {
 public:
  // A scalar.
  Shape() = default;
  // REQUIRES: every dimension >= 0 and their product < 2^63.
  Shape(std::initializer_list<int64_t> dims);
  // ERRORS: InvalidArgument for a negative dimension or a product >= 2^63 that
  // shows the shape.
  static absl::StatusOr<Shape> FromDims(absl::Span<const int64_t> dims);

  int rank() const { return static_cast<int>(dims_.size()); }
  // REQUIRES: 0 <= axis < rank().
  int64_t dim(int axis) const { return dims_[axis]; }
  absl::Span<const int64_t> dims() const { return dims_; }
  int64_t num_elements() const { return num_elements_; }
  // "[1,224,224,3]"; "[]" for a scalar.
  std::string ToString() const;
  friend bool operator==(const Shape& a, const Shape& b) {
    return a.dims_ == b.dims_;
  }

 private:
  absl::InlinedVector<int64_t, 4> dims_;
  int64_t num_elements_ = 1;
};

// UNITS: bytes of one element; 0 for strings, resources and variants.
inline size_t ElementSize(DataType dtype) {
  return static_cast<size_t>(graph::ElementBytes(dtype));
}

// The C++ type of a dtype's elements; for code that is written per type.
template <DataType kType>
struct ElementOf;
// The dtype that Tensor::Scalar and friends give a C++ type.
template <typename T>
struct DataTypeOf;

#define OPTFARM_ELEMENT_TYPE(dtype, type) \
  template <>                             \
  struct ElementOf<tensorflow::dtype> {   \
    using Type = type;                    \
  }
#define OPTFARM_DATA_TYPE(dtype, type)                    \
  OPTFARM_ELEMENT_TYPE(dtype, type);                      \
  template <>                                             \
  struct DataTypeOf<type> {                               \
    static constexpr DataType kValue = tensorflow::dtype; \
  }
OPTFARM_DATA_TYPE(DT_FLOAT, float);
OPTFARM_DATA_TYPE(DT_DOUBLE, double);
OPTFARM_DATA_TYPE(DT_INT8, int8_t);
OPTFARM_DATA_TYPE(DT_INT16, int16_t);
OPTFARM_DATA_TYPE(DT_INT32, int32_t);
OPTFARM_DATA_TYPE(DT_INT64, int64_t);
OPTFARM_DATA_TYPE(DT_UINT8, uint8_t);
OPTFARM_DATA_TYPE(DT_UINT16, uint16_t);
OPTFARM_DATA_TYPE(DT_UINT32, uint32_t);
OPTFARM_DATA_TYPE(DT_UINT64, uint64_t);
OPTFARM_DATA_TYPE(DT_BOOL, bool);
OPTFARM_DATA_TYPE(DT_STRING, std::string);
OPTFARM_DATA_TYPE(DT_COMPLEX64, std::complex<float>);
OPTFARM_DATA_TYPE(DT_COMPLEX128, std::complex<double>);
OPTFARM_ELEMENT_TYPE(DT_QINT8, int8_t);
OPTFARM_ELEMENT_TYPE(DT_QUINT8, uint8_t);
OPTFARM_ELEMENT_TYPE(DT_QINT16, int16_t);
OPTFARM_ELEMENT_TYPE(DT_QUINT16, uint16_t);
OPTFARM_ELEMENT_TYPE(DT_QINT32, int32_t);
#undef OPTFARM_DATA_TYPE
#undef OPTFARM_ELEMENT_TYPE

// Copies share the buffer. THREADS: like std::shared_ptr's; elements must not
// be written while another thread or another copy reads them.
class Tensor {
 public:
  // No tensor: dtype() is DT_INVALID. A dead value in the executor.
  Tensor() = default;

  // Memory for `shape` elements, not initialized (strings are empty), aligned
  // to 64 bytes.
  // ERRORS: ResourceExhausted when the memory is not to be had; Unimplemented
  // for a dtype without elements.
  static absl::StatusOr<Tensor> Allocate(DataType dtype, const Shape& shape);
  // As Allocate, with all bytes zero.
  static absl::StatusOr<Tensor> Zeros(DataType dtype, const Shape& shape);
  // A tensor over memory that is somebody else's and only read, such as a
  // mapped file. OWNERSHIP: `owner` is kept until the last copy goes.
  // REQUIRES: ElementSize(dtype) > 0, and `data` is aligned for and holds
  // shape.num_elements() valid elements.
  static Tensor View(DataType dtype, const Shape& shape, const void* data,
                     std::shared_ptr<const void> owner);

  // A tensor over memory that it shares with nobody else and may write.
  // REQUIRES: as View; `memory` points at the elements.
  static Tensor Over(DataType dtype, const Shape& shape,
                     std::shared_ptr<void> memory);

  // Small tensors that our own code makes; these cannot fail.
  template <typename T>
  static Tensor Scalar(const T& value) {
    return FromValues<T>(Shape(), absl::MakeConstSpan(&value, 1));
  }
  // REQUIRES: values.size() == shape.num_elements().
  template <typename T>
  static Tensor FromValues(const Shape& shape, absl::Span<const T> values) {
    absl::StatusOr<Tensor> made = Allocate(DataTypeOf<T>::kValue, shape);
    OPTFARM_CHECK(made.ok());
    OPTFARM_CHECK(static_cast<int64_t>(values.size()) == shape.num_elements());
    T* out = made->data<T>();
    for (size_t i = 0; i < values.size(); ++i) out[i] = values[i];
    return *std::move(made);
  }

  // A handle: a scalar without elements that holds on to a resource.
  // REQUIRES: dtype is DT_RESOURCE or DT_VARIANT, resource != nullptr.
  static Tensor FromResource(DataType dtype,
                             std::shared_ptr<Resource> resource);

  // Decodes a TensorProto as TensorFlow does: raw content of exactly the right
  // length, or a typed list whose last value repeats.
  // ERRORS: InvalidArgument, always before memory is taken, for an undefined
  // or overflowing shape, a content length that does not fit, or a dtype we do
  // not know.
  static absl::StatusOr<Tensor> FromProto(const tensorflow::TensorProto& proto);
  // Writes numeric tensors through tensor_content, strings through string_val.
  tensorflow::TensorProto ToProto() const;

  DataType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int axis) const { return shape_.dim(axis); }
  int64_t num_elements() const { return shape_.num_elements(); }
  bool has_value() const { return dtype_ != tensorflow::DT_INVALID; }
  // UNITS: bytes of the elements; for strings the sum of their lengths.
  int64_t TotalBytes() const;

  // REQUIRES: T is the dtype's element type (quantized dtypes: the integer).
  template <typename T>
  const T* data() const {
    CheckElement<T>();
    return static_cast<const T*>(data_);
  }
  template <typename T>
  T* data() {
    CheckElement<T>();
    return static_cast<T*>(data_);
  }
  template <typename T>
  absl::Span<const T> flat() const {
    return absl::MakeConstSpan(data<T>(), static_cast<size_t>(num_elements()));
  }
  template <typename T>
  absl::Span<T> flat() {
    return absl::MakeSpan(data<T>(), static_cast<size_t>(num_elements()));
  }
  // The elements' bytes. REQUIRES: not a string tensor.
  const void* raw() const { return data_; }
  void* raw() { return data_; }

  bool is_handle() const {
    return dtype_ == tensorflow::DT_RESOURCE ||
           dtype_ == tensorflow::DT_VARIANT;
  }
  // What a handle leads to; nullptr for other tensors.
  Resource* resource() const {
    return is_handle() ? static_cast<Resource*>(data_) : nullptr;
  }

  // The same buffer under another shape.
  // REQUIRES: the same number of elements.
  Tensor Reshaped(const Shape& shape) const;
  // The same buffer as another dtype of the same element size.
  Tensor Reinterpreted(DataType dtype) const;
  // True when no other tensor shares the buffer: it may be written in place.
  // Never true for a view.
  bool IsSoleOwner() const {
    return !is_view_ && owner_ != nullptr && owner_.use_count() == 1;
  }

  // The integer elements (int32 or int64; also other integer dtypes) as int64.
  // ERRORS: InvalidArgument for other dtypes.
  absl::StatusOr<std::vector<int64_t>> AsInt64s() const;
  // "float [1,2,2]: 1 2 3 ..." with at most `limit` elements.
  std::string DebugString(int limit = 3) const;

 private:
  template <typename T>
  void CheckElement() const {
    if constexpr (std::is_same_v<T, std::string>) {
      OPTFARM_CHECK(dtype_ == tensorflow::DT_STRING);
    } else {
      OPTFARM_CHECK(ElementSize(dtype_) == sizeof(T));
    }
  }

  DataType dtype_ = tensorflow::DT_INVALID;
  Shape shape_;
  std::shared_ptr<void> owner_;
  void* data_ = nullptr;
  bool is_view_ = false;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_CORE_TENSOR_H_
