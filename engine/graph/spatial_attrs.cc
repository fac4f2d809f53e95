#include "engine/graph/spatial_attrs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"

namespace optfarm::graph {
namespace {

using tensorflow::NodeDef;

constexpr std::pair<absl::string_view, DataFormat> kDataFormats[] = {
    {"NHWC", DataFormat::kNhwc},
    {"NCHW", DataFormat::kNchw},
    {"NDHWC", DataFormat::kNdhwc},
    {"NCDHW", DataFormat::kNcdhw},
    {"NCHW_VECT_C", DataFormat::kNchwVectC},
};

constexpr std::pair<absl::string_view, Padding> kPaddings[] = {
    {"SAME", Padding::kSame},
    {"VALID", Padding::kValid},
    {"EXPLICIT", Padding::kExplicit},
};

absl::string_view NameOf(DataFormat format) {
  for (const auto& [name, value] : kDataFormats) {
    if (value == format) return name;
  }
  return "";
}

// Whether the format is `first` rather than `last`, which is meant where it is
// absent.
absl::StatusOr<bool> IsFirstOf(const NodeDef& node, DataFormat first,
                               DataFormat last) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string text,
                           GetStringOr(node, "data_format", NameOf(last)));
  const absl::StatusOr<DataFormat> format = ParseDataFormat(text);
  if (format.ok() && *format == first) return true;
  if (format.ok() && *format == last) return false;
  return absl::UnimplementedError(absl::StrCat("data_format '", text,
                                               "' is neither ", NameOf(last),
                                               " nor ", NameOf(first)));
}

}  // namespace

absl::StatusOr<DataFormat> ParseDataFormat(absl::string_view text) {
  for (const auto& [name, format] : kDataFormats) {
    if (name == text) return format;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("data_format '", text, "' is not known"));
}

absl::StatusOr<Padding> ParsePadding(absl::string_view text) {
  for (const auto& [name, padding] : kPaddings) {
    if (name == text) return padding;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("padding '", text, "' is none of SAME, VALID, EXPLICIT"));
}

absl::StatusOr<DataFormat> GetDataFormat(const NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string text,
                           GetStringOr(node, "data_format", "NHWC"));
  return ParseDataFormat(text);
}

absl::StatusOr<Padding> GetPadding(const NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string text, GetString(node, "padding"));
  return ParsePadding(text);
}

bool IsNhwc(const NodeDef& node) {
  const absl::StatusOr<DataFormat> format = GetDataFormat(node);
  return format.ok() && *format == DataFormat::kNhwc;
}

bool IsSameOrValid(const NodeDef& node) { return IsSame(node).ok(); }

absl::StatusOr<bool> IsNchw(const NodeDef& node) {
  return IsFirstOf(node, DataFormat::kNchw, DataFormat::kNhwc);
}

absl::StatusOr<bool> IsNcdhw(const NodeDef& node) {
  return IsFirstOf(node, DataFormat::kNcdhw, DataFormat::kNdhwc);
}

absl::StatusOr<bool> IsSame(const NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string text, GetString(node, "padding"));
  const absl::StatusOr<Padding> padding = ParsePadding(text);
  if (padding.ok() && *padding != Padding::kExplicit) {
    return *padding == Padding::kSame;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("padding '", text, "' is neither SAME nor VALID"));
}

std::string DataFormatText(const NodeDef& node) {
  return GetStringOr(node, "data_format", "NHWC").value_or("");
}

std::string PaddingText(const NodeDef& node) {
  return GetStringOr(node, "padding", "").value_or("");
}

}  // namespace optfarm::graph
