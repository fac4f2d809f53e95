#include "engine/formats/samples/npy.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/formats/samples/npy_header.h"
#include "engine/graph/attr.h"
#include "engine/graph/tensor_proto.h"

namespace optfarm::formats {
namespace {

using tensorflow::DataType;
using tensorflow::TensorProto;

struct TypeName {
  DataType dtype;
  // Kind and element size, without the byte order.
  absl::string_view descr;
};

// The first entry of a descr is what it is read as.
constexpr TypeName kTypes[] = {
    {tensorflow::DT_FLOAT, "f4"},     {tensorflow::DT_DOUBLE, "f8"},
    {tensorflow::DT_HALF, "f2"},      {tensorflow::DT_INT8, "i1"},
    {tensorflow::DT_INT16, "i2"},     {tensorflow::DT_INT32, "i4"},
    {tensorflow::DT_INT64, "i8"},     {tensorflow::DT_UINT8, "u1"},
    {tensorflow::DT_UINT16, "u2"},    {tensorflow::DT_UINT32, "u4"},
    {tensorflow::DT_UINT64, "u8"},    {tensorflow::DT_BOOL, "b1"},
    {tensorflow::DT_COMPLEX64, "c8"}, {tensorflow::DT_COMPLEX128, "c16"},
    {tensorflow::DT_QINT8, "i1"},     {tensorflow::DT_QUINT8, "u1"},
    {tensorflow::DT_QINT16, "i2"},    {tensorflow::DT_QUINT16, "u2"},
    {tensorflow::DT_QINT32, "i4"},
};

struct ElementType {
  DataType dtype = tensorflow::DT_INVALID;
  // UNITS: bytes of one element.
  uint64_t size = 0;
  // UNITS: bytes that are swapped as one; 1 when no swap is needed.
  size_t swap = 1;
};

absl::StatusOr<ElementType> ParseDescr(absl::string_view descr) {
  if (descr.size() < 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("element type '", descr, "' is not known"));
  }
  const absl::string_view kind = descr.substr(1);
  uint64_t size = 0;
  if (kind[0] == 'S' && absl::SimpleAtoi(kind.substr(1), &size)) {
    return ElementType{tensorflow::DT_STRING, size, 1};
  }
  for (const TypeName& type : kTypes) {
    if (type.descr != kind) continue;
    ElementType result;
    result.dtype = type.dtype;
    result.size = graph::ElementBytes(type.dtype);
    const bool is_complex = kind[0] == 'c';
    if (descr[0] == '>') result.swap = result.size / (is_complex ? 2 : 1);
    return result;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("element type '", descr,
                   "' has no tensor dtype; convert the array, for "
                   "instance with astype('float32')"));
}

void SwapBytes(size_t unit, std::string* data) {
  if (unit < 2) return;
  for (size_t at = 0; at + unit <= data->size(); at += unit) {
    std::reverse(data->begin() + at, data->begin() + at + unit);
  }
}

// Puts elements in Fortran order (first index fastest) into C order.
std::string ToCOrder(absl::string_view data, const std::vector<int64_t>& shape,
                     size_t size) {
  std::string out(data.size(), '\0');
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  std::vector<int64_t> index(shape.size(), 0);
  int64_t from = 0;
  for (size_t to = 0; to < out.size(); to += size) {
    std::memcpy(&out[to], data.data() + from * static_cast<int64_t>(size),
                size);
    for (size_t axis = shape.size(); axis-- > 0;) {
      from += strides[axis];
      if (++index[axis] < shape[axis]) break;
      from -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
  return out;
}

// Elements of `shape`, checked to fill exactly `have` bytes.
absl::Status CheckSize(const NpyHeader& header, uint64_t element, size_t have) {
  uint64_t want = element;
  bool overflow = false;
  for (const int64_t dim : header.shape) {
    overflow |= __builtin_mul_overflow(want, static_cast<uint64_t>(dim), &want);
  }
  if (!overflow && want == have) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "shape (", absl::StrJoin(header.shape, ","), ") of ", header.descr,
      " needs ",
      overflow ? std::string("more bytes than can be counted")
               : absl::StrCat(want, " bytes"),
      ", but the file has ", have, have < want ? "; it is truncated" : ""));
}

void FillStrings(absl::string_view data, uint64_t size, int64_t count,
                 TensorProto* tensor) {
  for (int64_t i = 0; i < count; ++i) {
    absl::string_view text = data.substr(i * size, size);
    while (!text.empty() && text.back() == '\0') text.remove_suffix(1);
    tensor->add_string_val(text.data(), text.size());
  }
}

absl::StatusOr<TensorProto> Parse(absl::string_view bytes) {
  OPTFARM_ASSIGN_OR_RETURN(const NpyHeader header, ReadNpyHeader(bytes));
  OPTFARM_ASSIGN_OR_RETURN(const ElementType type, ParseDescr(header.descr));
  const absl::string_view raw = bytes.substr(header.data_offset);
  OPTFARM_RETURN_IF_ERROR(CheckSize(header, type.size, raw.size()));
  TensorProto tensor;
  tensor.set_dtype(type.dtype);
  for (const int64_t dim : header.shape) {
    tensor.mutable_tensor_shape()->add_dim()->set_size(dim);
  }
  if (type.size == 0) {
    return absl::InvalidArgumentError("elements without bytes are not read");
  }
  const bool reorder = header.fortran_order && header.shape.size() > 1;
  std::string data =
      reorder ? ToCOrder(raw, header.shape, type.size) : std::string(raw);
  if (type.dtype == tensorflow::DT_STRING) {
    FillStrings(data, type.size, data.size() / type.size, &tensor);
    return tensor;
  }
  SwapBytes(type.swap, &data);
  if (type.dtype == tensorflow::DT_BOOL) {
    // Any other value than 0 and 1 is no valid bool in memory.
    for (char& c : data) c = c != 0;
  }
  *tensor.mutable_tensor_content() = std::move(data);
  return tensor;
}

template <typename To, typename List>
void AppendValues(const List& list, std::string* out) {
  for (const auto& value : list) {
    const To element = static_cast<To>(value);
    out->append(reinterpret_cast<const char*>(&element), sizeof(element));
  }
}

// The bytes of a tensor that holds its values as a typed list.
std::string ListedContent(const TensorProto& tensor) {
  std::string out;
  switch (graph::ElementBytes(tensor.dtype())) {
    case 1:
      AppendValues<int8_t>(tensor.int_val(), &out);
      AppendValues<int8_t>(tensor.bool_val(), &out);
      break;
    case 2:
      AppendValues<int16_t>(tensor.int_val(), &out);
      AppendValues<int16_t>(tensor.half_val(), &out);
      break;
    case 4:
      AppendValues<int32_t>(tensor.int_val(), &out);
      AppendValues<uint32_t>(tensor.uint32_val(), &out);
      AppendValues<float>(tensor.float_val(), &out);
      break;
    default:
      AppendValues<int64_t>(tensor.int64_val(), &out);
      AppendValues<uint64_t>(tensor.uint64_val(), &out);
      AppendValues<double>(tensor.double_val(), &out);
      AppendValues<float>(tensor.scomplex_val(), &out);
      AppendValues<double>(tensor.dcomplex_val(), &out);
  }
  return out;
}

absl::StatusOr<std::string> SerializeStrings(const TensorProto& tensor,
                                             const std::vector<int64_t>& shape,
                                             int64_t count) {
  if (tensor.string_val_size() != count) {
    return absl::InvalidArgumentError(
        "A list of strings that is shorter than "
        "its shape cannot be written as .npy");
  }
  size_t longest = 1;
  for (const std::string& text : tensor.string_val()) {
    longest = std::max(longest, text.size());
  }
  if (longest > kMaxNpyBytes / std::max<int64_t>(count, 1)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(count, " strings of up to ", longest,
                     " bytes are too many for one .npy file"));
  }
  std::string out = WriteNpyHeader(absl::StrCat("|S", longest), shape);
  for (const std::string& text : tensor.string_val()) {
    out.append(text);
    out.append(longest - text.size(), '\0');
  }
  return out;
}

}  // namespace

absl::StatusOr<TensorProto> ParseNpy(absl::string_view bytes,
                                     absl::string_view name) {
  absl::StatusOr<TensorProto> tensor = Parse(bytes);
  if (!tensor.ok()) {
    return Annotate(tensor.status(), absl::StrCat("While reading ", name));
  }
  return tensor;
}

absl::StatusOr<TensorProto> LoadNpy(const std::string& path,
                                    uint64_t max_bytes) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, max_bytes));
  return ParseNpy(bytes, absl::StrCat("'", path, "'"));
}

absl::StatusOr<std::string> SerializeNpy(const TensorProto& tensor) {
  OPTFARM_RETURN_IF_ERROR(graph::CheckTensorProto(tensor));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t count,
                           graph::ElementCount(tensor.tensor_shape()));
  std::vector<int64_t> shape;
  for (const auto& dim : tensor.tensor_shape().dim()) {
    shape.push_back(dim.size());
  }
  if (tensor.dtype() == tensorflow::DT_STRING) {
    return SerializeStrings(tensor, shape, count);
  }
  const auto* type = std::find_if(
      std::begin(kTypes), std::end(kTypes),
      [&](const TypeName& t) { return t.dtype == tensor.dtype(); });
  if (type == std::end(kTypes)) {
    return absl::UnimplementedError(absl::StrCat(
        "NumPy has no element type for ", graph::DataTypeName(tensor.dtype())));
  }
  const std::string data = tensor.tensor_content().empty()
                               ? ListedContent(tensor)
                               : tensor.tensor_content();
  const uint64_t size = graph::ElementBytes(tensor.dtype());
  if (data.size() != count * size) {
    return absl::InvalidArgumentError(
        absl::StrCat("The tensor lists ", data.size() / size, " values for ",
                     count, " elements and cannot be written as .npy"));
  }
  const char order = size == 1 ? '|' : '<';
  return WriteNpyHeader(absl::StrCat(std::string(1, order), type->descr),
                        shape) +
         data;
}

absl::Status SaveNpy(const TensorProto& tensor, const std::string& path) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes, SerializeNpy(tensor));
  return WriteFileAtomically(path, bytes);
}

}  // namespace optfarm::formats
