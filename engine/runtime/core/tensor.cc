#include "engine/runtime/core/tensor.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/tensor_proto.h"
#include "engine/runtime/core/memory_budget.h"
#include "engine/runtime/core/memory_scope.h"

namespace optfarm::runtime {
namespace {

using tensorflow::TensorProto;

constexpr size_t kAlignment = 64;
constexpr int64_t kMaxTensorBytes = int64_t{1} << 36;

// `memory` under an owner that frees it, within this thread's budget.
template <typename Free>
std::shared_ptr<void> Own(void* memory, int64_t bytes, Free free) {
  const std::shared_ptr<MemoryBudget>* budget = BudgetScope::Current();
  if (budget == nullptr) return {memory, free};
  return {memory, [free, bytes, budget = *budget](void* p) {
            free(p);
            budget->Give(bytes);
          }};
}

bool TakeFromBudget(int64_t bytes) {
  const std::shared_ptr<MemoryBudget>* budget = BudgetScope::Current();
  return budget == nullptr || (*budget)->Take(bytes);
}

void GiveToBudget(int64_t bytes) {
  const std::shared_ptr<MemoryBudget>* budget = BudgetScope::Current();
  if (budget != nullptr) (*budget)->Give(bytes);
}

std::shared_ptr<void> AllocateStrings(int64_t count) {
  const int64_t bytes = count * static_cast<int64_t>(sizeof(std::string));
  if (!TakeFromBudget(bytes)) return nullptr;
  auto* array = new (std::nothrow) std::string[static_cast<size_t>(count)];
  if (array == nullptr) {
    GiveToBudget(bytes);
    return nullptr;
  }
  return Own(array, bytes,
             [](void* p) { delete[] static_cast<std::string*>(p); });
}

// A little memory: within a loop each iteration asks for the same few sizes,
// which malloc hands out again at once and aligned_alloc searches for.
constexpr size_t kSmallBytes = 16 * 1024;

void* AllocateSmall(size_t bytes) {
  void* const whole = std::malloc(bytes + kAlignment);
  if (whole == nullptr) return nullptr;
  // What malloc gave stands right before what is aligned.
  const auto address = reinterpret_cast<uintptr_t>(whole);
  const uintptr_t aligned = (address / kAlignment + 1) * kAlignment;
  reinterpret_cast<void**>(aligned)[-1] = whole;
  return reinterpret_cast<void*>(aligned);
}

void FreeSmall(void* memory) { std::free(static_cast<void**>(memory)[-1]); }

std::shared_ptr<void> AllocateBytes(int64_t bytes) {
  const size_t rounded =
      (std::max<size_t>(static_cast<size_t>(bytes), 1) + kAlignment - 1) /
      kAlignment * kAlignment;
  int64_t taken = static_cast<int64_t>(rounded);
  if (!TakeFromBudget(taken)) {
    // Our own code makes scalars that cannot fail (Tensor::Scalar): what a
    // limit stops is a tensor that matters.
    if (rounded > kAlignment) return nullptr;
    taken = 0;
  }
  const bool is_small = rounded <= kSmallBytes;
  void* memory = is_small ? AllocateSmall(rounded)
                          : std::aligned_alloc(kAlignment, rounded);
  if (memory == nullptr) {
    GiveToBudget(taken);
    return nullptr;
  }
  return is_small ? Own(memory, taken, FreeSmall)
                  : Own(memory, taken, [](void* p) { std::free(p); });
}

absl::Status NoMemory(DataType dtype, const Shape& shape) {
  std::string message =
      absl::StrCat("no memory for a ", graph::DataTypeName(dtype),
                   " tensor of shape ", shape.ToString());
  const std::shared_ptr<MemoryBudget>* budget = BudgetScope::Current();
  if (budget != nullptr && (*budget)->limit() != MemoryBudget::kUnlimited) {
    absl::StrAppend(&message, ": ", (*budget)->used(), " of the limit of ",
                    (*budget)->limit(), " bytes are taken");
  }
  return absl::ResourceExhaustedError(message);
}

// Writes `values` to out[0..count), repeating the last; zero when empty.
template <typename T, typename Values>
void FillRepeatingLast(const Values& values, int64_t count, T* out) {
  const int64_t given = std::min<int64_t>(values.size(), count);
  for (int64_t i = 0; i < given; ++i) {
    out[i] = static_cast<T>(values.Get(static_cast<int>(i)));
  }
  const T last = given > 0 ? out[given - 1] : T();
  std::fill(out + given, out + count, last);
}

// Complex values are stored as pairs of real numbers.
template <typename T, typename Values>
void FillComplex(const Values& values, int64_t count, T* out) {
  const int64_t given = std::min<int64_t>(values.size() / 2, count);
  for (int64_t i = 0; i < given; ++i) {
    out[i] = T(values.Get(static_cast<int>(2 * i)),
               values.Get(static_cast<int>(2 * i + 1)));
  }
  std::fill(out + given, out + count, given > 0 ? out[given - 1] : T());
}

void DecodeTypedList(const TensorProto& p, Tensor* t) {
  const int64_t n = t->num_elements();
  switch (p.dtype()) {
    case tensorflow::DT_FLOAT:
      return FillRepeatingLast(p.float_val(), n, t->data<float>());
    case tensorflow::DT_DOUBLE:
      return FillRepeatingLast(p.double_val(), n, t->data<double>());
    case tensorflow::DT_INT32:
    case tensorflow::DT_QINT32:
      return FillRepeatingLast(p.int_val(), n, t->data<int32_t>());
    case tensorflow::DT_INT8:
    case tensorflow::DT_QINT8:
      return FillRepeatingLast(p.int_val(), n, t->data<int8_t>());
    case tensorflow::DT_UINT8:
    case tensorflow::DT_QUINT8:
      return FillRepeatingLast(p.int_val(), n, t->data<uint8_t>());
    case tensorflow::DT_INT16:
    case tensorflow::DT_QINT16:
      return FillRepeatingLast(p.int_val(), n, t->data<int16_t>());
    case tensorflow::DT_UINT16:
    case tensorflow::DT_QUINT16:
      return FillRepeatingLast(p.int_val(), n, t->data<uint16_t>());
    case tensorflow::DT_HALF:
    case tensorflow::DT_BFLOAT16:
      return FillRepeatingLast(p.half_val(), n, t->data<uint16_t>());
    case tensorflow::DT_INT64:
      return FillRepeatingLast(p.int64_val(), n, t->data<int64_t>());
    case tensorflow::DT_UINT32:
      return FillRepeatingLast(p.uint32_val(), n, t->data<uint32_t>());
    case tensorflow::DT_UINT64:
      return FillRepeatingLast(p.uint64_val(), n, t->data<uint64_t>());
    case tensorflow::DT_BOOL:
      return FillRepeatingLast(p.bool_val(), n, t->data<bool>());
    case tensorflow::DT_COMPLEX64:
      return FillComplex(p.scomplex_val(), n, t->data<std::complex<float>>());
    case tensorflow::DT_COMPLEX128:
      return FillComplex(p.dcomplex_val(), n, t->data<std::complex<double>>());
    case tensorflow::DT_STRING:
      return FillRepeatingLast(p.string_val(), n, t->data<std::string>());
    default:
      return;
  }
}

bool HasElements(DataType dtype) {
  return dtype == tensorflow::DT_STRING || ElementSize(dtype) > 0;
}

}  // namespace

Shape::Shape(std::initializer_list<int64_t> dims) {
  absl::StatusOr<Shape> made =
      FromDims(absl::MakeConstSpan(dims.begin(), dims.size()));
  OPTFARM_CHECK(made.ok());
  *this = *std::move(made);
}

absl::StatusOr<Shape> Shape::FromDims(absl::Span<const int64_t> dims) {
  Shape shape;
  bool has_zero = false;
  int64_t product = 1;
  bool overflow = false;
  for (int64_t dim : dims) {
    if (dim < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "shape [", absl::StrJoin(dims, ","), "] has a negative dimension"));
    }
    has_zero |= dim == 0;
    if (dim > 0) overflow |= __builtin_mul_overflow(product, dim, &product);
    shape.dims_.push_back(dim);
  }
  if (overflow) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shape [", absl::StrJoin(dims, ","), "] has 2^63 elements or more"));
  }
  shape.num_elements_ = has_zero ? 0 : product;
  return shape;
}

std::string Shape::ToString() const {
  return absl::StrCat("[", absl::StrJoin(dims_, ","), "]");
}

absl::StatusOr<Tensor> Tensor::Allocate(DataType dtype, const Shape& shape) {
  if (TensorMemory* memory = MemoryScope::Current(); memory != nullptr) {
    return memory->Allocate(dtype, shape);
  }
  if (!HasElements(dtype)) {
    return absl::UnimplementedError(absl::StrCat(
        "tensors of dtype ", graph::DataTypeName(dtype), " are not supported"));
  }
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.shape_ = shape;
  const bool is_string = dtype == tensorflow::DT_STRING;
  const int64_t size = static_cast<int64_t>(is_string ? sizeof(std::string)
                                                      : ElementSize(dtype));
  if (shape.num_elements() <= kMaxTensorBytes / size) {
    tensor.owner_ = is_string ? AllocateStrings(shape.num_elements())
                              : AllocateBytes(shape.num_elements() * size);
  }
  if (tensor.owner_ == nullptr) {
    return NoMemory(dtype, shape);
  }
  tensor.data_ = tensor.owner_.get();
  return tensor;
}

absl::StatusOr<Tensor> Tensor::Zeros(DataType dtype, const Shape& shape) {
  OPTFARM_ASSIGN_OR_RETURN(Tensor tensor, Allocate(dtype, shape));
  if (dtype != tensorflow::DT_STRING) {
    std::memset(tensor.data_, 0, static_cast<size_t>(tensor.TotalBytes()));
  }
  return tensor;
}

Tensor Tensor::View(DataType dtype, const Shape& shape, const void* data,
                    std::shared_ptr<const void> owner) {
  OPTFARM_CHECK(ElementSize(dtype) > 0);
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.shape_ = shape;
  tensor.owner_ = std::const_pointer_cast<void>(std::move(owner));
  // Written by nobody: IsSoleOwner() is never true for a view.
  tensor.data_ = const_cast<void*>(data);
  tensor.is_view_ = true;
  return tensor;
}

Tensor Tensor::Over(DataType dtype, const Shape& shape,
                    std::shared_ptr<void> memory) {
  OPTFARM_CHECK(ElementSize(dtype) > 0);
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.shape_ = shape;
  tensor.data_ = memory.get();
  tensor.owner_ = std::move(memory);
  return tensor;
}

Tensor Tensor::FromResource(DataType dtype,
                            std::shared_ptr<Resource> resource) {
  OPTFARM_CHECK(resource != nullptr);
  Tensor tensor;
  tensor.dtype_ = dtype;
  OPTFARM_CHECK(tensor.is_handle());
  tensor.data_ = resource.get();
  tensor.owner_ = std::move(resource);
  return tensor;
}

absl::StatusOr<Tensor> Tensor::FromProto(const TensorProto& proto) {
  OPTFARM_RETURN_IF_ERROR(graph::CheckTensorProto(proto));
  std::vector<int64_t> dims;
  for (const auto& dim : proto.tensor_shape().dim()) dims.push_back(dim.size());
  OPTFARM_ASSIGN_OR_RETURN(Shape shape, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(Tensor tensor, Allocate(proto.dtype(), shape));
  if (!proto.tensor_content().empty() &&
      proto.dtype() != tensorflow::DT_STRING) {
    std::memcpy(tensor.data_, proto.tensor_content().data(),
                proto.tensor_content().size());
    if (proto.dtype() == tensorflow::DT_BOOL) {
      // A byte other than 0 or 1 is no valid bool to the compiler.
      auto* bytes = static_cast<uint8_t*>(tensor.data_);
      for (int64_t i = 0; i < tensor.num_elements(); ++i)
        bytes[i] = bytes[i] != 0;
    }
  } else {
    DecodeTypedList(proto, &tensor);
  }
  return tensor;
}

TensorProto Tensor::ToProto() const {
  TensorProto proto;
  proto.set_dtype(dtype_);
  auto* shape = proto.mutable_tensor_shape();
  for (int64_t dim : shape_.dims()) shape->add_dim()->set_size(dim);
  if (dtype_ == tensorflow::DT_STRING) {
    for (const std::string& s : flat<std::string>()) proto.add_string_val(s);
  } else if (has_value()) {
    proto.set_tensor_content(data_, static_cast<size_t>(TotalBytes()));
  }
  return proto;
}

int64_t Tensor::TotalBytes() const {
  if (dtype_ != tensorflow::DT_STRING) {
    return has_value()
               ? num_elements() * static_cast<int64_t>(ElementSize(dtype_))
               : 0;
  }
  int64_t total = 0;
  for (const std::string& s : flat<std::string>()) {
    total += static_cast<int64_t>(s.size());
  }
  return total;
}

Tensor Tensor::Reshaped(const Shape& shape) const {
  OPTFARM_CHECK(shape.num_elements() == num_elements());
  Tensor result = *this;
  result.shape_ = shape;
  return result;
}

Tensor Tensor::Reinterpreted(DataType dtype) const {
  OPTFARM_CHECK(ElementSize(dtype) == ElementSize(dtype_) &&
                ElementSize(dtype) > 0);
  Tensor result = *this;
  result.dtype_ = dtype;
  return result;
}

absl::StatusOr<std::vector<int64_t>> Tensor::AsInt64s() const {
  const auto widen = [](auto span) {
    return std::vector<int64_t>(span.begin(), span.end());
  };
  switch (dtype_) {
    case tensorflow::DT_INT32:
      return widen(flat<int32_t>());
    case tensorflow::DT_INT64:
      return widen(flat<int64_t>());
    case tensorflow::DT_INT16:
      return widen(flat<int16_t>());
    case tensorflow::DT_INT8:
      return widen(flat<int8_t>());
    case tensorflow::DT_UINT8:
      return widen(flat<uint8_t>());
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("expected integers, got a tensor of dtype ",
                       graph::DataTypeName(dtype_)));
  }
}

namespace {

std::string ElementText(const Tensor& t, int64_t i) {
  switch (t.dtype()) {
    case tensorflow::DT_FLOAT:
      return absl::StrCat(t.data<float>()[i]);
    case tensorflow::DT_DOUBLE:
      return absl::StrCat(t.data<double>()[i]);
    case tensorflow::DT_INT32:
    case tensorflow::DT_QINT32:
      return absl::StrCat(t.data<int32_t>()[i]);
    case tensorflow::DT_INT64:
      return absl::StrCat(t.data<int64_t>()[i]);
    case tensorflow::DT_UINT8:
    case tensorflow::DT_QUINT8:
      return absl::StrCat(static_cast<int>(t.data<uint8_t>()[i]));
    case tensorflow::DT_INT8:
    case tensorflow::DT_QINT8:
      return absl::StrCat(static_cast<int>(t.data<int8_t>()[i]));
    case tensorflow::DT_BOOL:
      return t.data<bool>()[i] ? "true" : "false";
    case tensorflow::DT_STRING:
      return absl::StrCat("'", t.data<std::string>()[i].substr(0, 40), "'");
    default:
      return "?";
  }
}

}  // namespace

std::string Tensor::DebugString(int limit) const {
  std::string text =
      absl::StrCat(graph::DataTypeName(dtype_), " ", shape_.ToString());
  if (!has_value() || limit < 1) return text;
  absl::StrAppend(&text, ":");
  for (int64_t i = 0; i < std::min<int64_t>(limit, num_elements()); ++i) {
    absl::StrAppend(&text, " ", ElementText(*this, i));
  }
  if (num_elements() > limit) absl::StrAppend(&text, " ...");
  return text;
}

}  // namespace optfarm::runtime
