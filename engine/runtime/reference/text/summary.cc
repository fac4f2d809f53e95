#include "engine/runtime/reference/text/summary.h"

#include <algorithm>
#include <complex>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/runtime/reference/dtype_switch.h"

namespace optfarm::runtime {
namespace {

// Few digits when they read back as the same value, else enough for any.
std::string ElementText(float value) {
  const std::string text = absl::StrFormat("%.6g", value);
  if (std::strtof(text.c_str(), nullptr) == value) return text;
  return absl::StrFormat("%.9g", value);
}
[[maybe_unused]] std::string ElementText(double value) {
  const std::string text = absl::StrFormat("%.15g", value);
  if (std::strtod(text.c_str(), nullptr) == value) return text;
  return absl::StrFormat("%.17g", value);
}
std::string ElementText(const std::string& value) {
  return absl::CEscape(value);
}
template <typename T>
std::string ElementText(T value) {
  static_assert(std::is_integral_v<T>);
  return std::is_signed_v<T> ? absl::StrCat(static_cast<int64_t>(value))
                             : absl::StrCat(static_cast<uint64_t>(value));
}

// Appends dimension `axis` onward, as long as fewer than `limit` elements were
// written.
template <typename T>
void AppendDim(const Tensor& tensor, int axis, int64_t limit, int64_t* written,
               std::string* text) {
  if (axis == tensor.rank() - 1) {
    for (int64_t i = 0; i < tensor.dim(axis) && *written < limit; ++i) {
      absl::StrAppend(text, i > 0 ? " " : "",
                      ElementText(tensor.data<T>()[(*written)++]));
    }
    return;
  }
  for (int64_t i = 0; i < tensor.dim(axis) && *written < limit; ++i) {
    text->push_back('[');
    AppendDim<T>(tensor, axis + 1, limit, written, text);
    text->push_back(']');
  }
}

template <typename T>
std::string SummarizeAs(const Tensor& tensor, int64_t limit) {
  std::string text;
  int64_t written = 0;
  if (tensor.num_elements() == 0) return text;
  if (tensor.rank() == 0) {
    if (limit > 0) text = ElementText(*tensor.data<T>());
  } else {
    AppendDim<T>(tensor, 0, limit, &written, &text);
  }
  if (tensor.num_elements() > limit) text.append("...");
  return text;
}

// Element `first` of dimension `axis` onward.
template <typename T>
void AppendNested(const Tensor& tensor, int axis, int64_t first,
                  int64_t at_ends, std::string* text) {
  if (axis == tensor.rank()) {
    const std::string element = ElementText(tensor.data<T>()[first]);
    const char* quote = std::is_same_v<T, std::string> ? "\"" : "";
    absl::StrAppend(text, quote, element, quote);
    return;
  }
  const int64_t count = tensor.dim(axis);
  int64_t size = 1;
  for (int i = axis + 1; i < tensor.rank(); ++i) size *= tensor.dim(i);
  const auto separate = [&] {
    const int below = tensor.rank() - axis - 1;
    if (below == 0) {
      text->push_back(' ');
    } else {
      text->append(static_cast<size_t>(below), '\n');
      text->append(static_cast<size_t>(axis) + 1, ' ');
    }
  };
  text->push_back('[');
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0) separate();
    if (i >= at_ends && i < count - at_ends) {
      text->append("...");
      i = count - at_ends - 1;
      continue;
    }
    AppendNested<T>(tensor, axis + 1, first + i * size, at_ends, text);
  }
  text->push_back(']');
}

// The integer type behind a quantized dtype.
DataType PlainType(DataType dtype) {
  switch (dtype) {
    case tensorflow::DT_QINT8:
      return tensorflow::DT_INT8;
    case tensorflow::DT_QUINT8:
    case tensorflow::DT_BOOL:
      return tensorflow::DT_UINT8;
    case tensorflow::DT_QINT16:
      return tensorflow::DT_INT16;
    case tensorflow::DT_QUINT16:
      return tensorflow::DT_UINT16;
    case tensorflow::DT_QINT32:
      return tensorflow::DT_INT32;
    default:
      return dtype;
  }
}

// Calls `append` with the type of the tensor's elements and says what it wrote.
template <typename Append>
std::string TextOf(const Tensor& tensor, Append append) {
  std::string text;
  if (tensor.dtype() == tensorflow::DT_STRING) {
    append(std::type_identity<std::string>(), &text);
    return text;
  }
  const absl::Status known = VisitNumber(PlainType(tensor.dtype()), "data",
                                         [&](auto tag) -> absl::Status {
                                           append(tag, &text);
                                           return absl::OkStatus();
                                         });
  return known.ok() ? text : "?";
}

}  // namespace

std::string Summarize(const Tensor& tensor, int64_t limit) {
  if (limit < 0) limit = std::numeric_limits<int64_t>::max();
  return TextOf(tensor, [&](auto tag, std::string* text) {
    *text = SummarizeAs<typename decltype(tag)::type>(tensor, limit);
  });
}

std::string SummarizeNested(const Tensor& tensor, int64_t at_ends) {
  if (at_ends < 0) at_ends = std::numeric_limits<int64_t>::max();
  return TextOf(tensor, [&](auto tag, std::string* text) {
    AppendNested<typename decltype(tag)::type>(tensor, 0, 0, at_ends, text);
  });
}

}  // namespace optfarm::runtime
