// Numbers as text and back: AsString, StringToNumber.

#include <array>
#include <cstdio>
#include <string>
#include <type_traits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

template <typename T>
bool ParseNumber(absl::string_view text, T* value) {
  if constexpr (std::is_same_v<T, float>) {
    return absl::SimpleAtof(text, value);
  } else if constexpr (std::is_same_v<T, double>) {
    return absl::SimpleAtod(text, value);
  } else {
    return absl::SimpleAtoi(text, value);
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeToNumber(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(
      node, "out_type",
      {tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE, tensorflow::DT_INT32,
       tensorflow::DT_INT64, tensorflow::DT_UINT32, tensorflow::DT_UINT64}));
  OPTFARM_ASSIGN_OR_RETURN(
      const DataType dtype,
      graph::GetTypeOr(node, "out_type", tensorflow::DT_FLOAT));
  return MakeKernel([dtype](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& input = context->input(0);
    OPTFARM_RETURN_IF_ERROR(
        RequireDtype(input, "string_tensor", tensorflow::DT_STRING));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, dtype, input.shape()));
    return VisitNumber(dtype, "out_type", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      if constexpr (sizeof(T) < 4) {
        return UnsupportedDtype("out_type", dtype);
      } else {
        for (int64_t i = 0; i < input.num_elements(); ++i) {
          const std::string& text = input.data<std::string>()[i];
          if (!ParseNumber(text, &out->data<T>()[i])) {
            return absl::InvalidArgumentError(absl::StrCat(
                "'", text.substr(0, 40), "' is not a number of the type"));
          }
        }
        return absl::OkStatus();
      }
    });
  });
}

struct TextFormat {
  int precision = -1;
  bool scientific = false;
  bool shortest = false;
  int width = -1;
  std::string fill;
};

// A double's longest form has 309 digits and the precision, which is bounded.
constexpr int kMaxWidth = 1000;

std::string Padded(std::string text, const TextFormat& format) {
  const int missing = format.width - static_cast<int>(text.size());
  if (missing <= 0) return text;
  if (format.fill == "-") return text + std::string(missing, ' ');
  const bool is_zero = format.fill == "0";
  const bool is_signed = !text.empty() && (text[0] == '-' || text[0] == '+');
  return text.insert(is_zero && is_signed ? 1 : 0, missing,
                     is_zero ? '0' : ' ');
}

std::string FormatReal(double value, const TextFormat& format) {
  char conversion[8] = "%.*f";
  if (format.scientific) conversion[3] = 'e';
  if (format.shortest) conversion[3] = 'g';
  std::array<char, 2 * kMaxWidth> buffer;
  const int length =
      std::snprintf(buffer.data(), buffer.size(), conversion,
                    format.precision < 0 ? 6 : format.precision, value);
  return std::string(buffer.data(), static_cast<size_t>(length));
}

template <typename T>
std::string FormatElement(const T& value, const TextFormat& format) {
  if constexpr (std::is_same_v<T, std::string>) {
    return Padded(value, format);
  } else if constexpr (std::is_same_v<T, bool>) {
    return Padded(value ? "true" : "false", format);
  } else if constexpr (std::is_floating_point_v<T>) {
    return Padded(FormatReal(value, format), format);
  } else if constexpr (std::is_integral_v<T>) {
    return Padded(absl::StrCat(value), format);
  } else {
    return absl::StrCat("(", FormatReal(value.real(), format), ",",
                        FormatReal(value.imag(), format), ")");
  }
}

absl::StatusOr<TextFormat> ReadFormat(const tensorflow::NodeDef& node) {
  TextFormat format;
  OPTFARM_ASSIGN_OR_RETURN(const int64_t precision,
                           graph::GetIntOr(node, "precision", -1));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t width,
                           graph::GetIntOr(node, "width", -1));
  OPTFARM_ASSIGN_OR_RETURN(format.scientific,
                           graph::GetBoolOr(node, "scientific", false));
  OPTFARM_ASSIGN_OR_RETURN(format.shortest,
                           graph::GetBoolOr(node, "shortest", false));
  OPTFARM_ASSIGN_OR_RETURN(format.fill, graph::GetStringOr(node, "fill", ""));
  if (precision > kMaxWidth || width > kMaxWidth) {
    return absl::InvalidArgumentError(
        absl::StrCat("precision and width must be at most ", kMaxWidth,
                     ", but are ", precision, " and ", width));
  }
  const bool is_known = format.fill.empty() || format.fill == " " ||
                        format.fill == "0" || format.fill == "-" ||
                        format.fill == "+";
  if (!is_known) {
    return absl::InvalidArgumentError(
        absl::StrCat("fill '", format.fill.substr(0, 40),
                     "' is none of '', ' ', '0', '-', '+'"));
  }
  format.precision = precision < 0 ? -1 : static_cast<int>(precision);
  format.width = width < 0 ? -1 : static_cast<int>(width);
  return format;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeAsString(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(
      node, "T",
      {tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE, tensorflow::DT_INT8,
       tensorflow::DT_INT16, tensorflow::DT_INT32, tensorflow::DT_INT64,
       tensorflow::DT_UINT8, tensorflow::DT_UINT16, tensorflow::DT_UINT32,
       tensorflow::DT_UINT64, tensorflow::DT_COMPLEX64,
       tensorflow::DT_COMPLEX128, tensorflow::DT_BOOL, tensorflow::DT_STRING}));
  OPTFARM_ASSIGN_OR_RETURN(const TextFormat format, ReadFormat(node));
  return MakeKernel([format](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& input = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out,
        context->AllocateOutput(0, tensorflow::DT_STRING, input.shape()));
    const auto write = [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < input.num_elements(); ++i) {
        out->data<std::string>()[i] = FormatElement(input.data<T>()[i], format);
      }
      return absl::OkStatus();
    };
    if (input.dtype() == tensorflow::DT_BOOL) {
      return write(std::type_identity<bool>());
    }
    if (input.dtype() == tensorflow::DT_STRING) {
      return write(std::type_identity<std::string>());
    }
    return VisitNumberOrComplex(input.dtype(), "input", write);
  });
}

}  // namespace

void AddStringNumberKernels(KernelCatalog* catalog) {
  catalog->Add("StringToNumber", MakeToNumber);
  catalog->Add("AsString", MakeAsString);
}

}  // namespace optfarm::runtime
