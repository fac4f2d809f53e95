#include "rpc/trace_parent.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace optfarm::rpc {
namespace {

// UNITS: characters. Places of the parts of version 00; later ones begin alike.
constexpr size_t kVersionDigits = 2;
constexpr size_t kTraceAt = 3;
constexpr size_t kTraceDigits = 32;
constexpr size_t kSpanAt = 36;
constexpr size_t kSpanDigits = 16;
constexpr size_t kFlagsAt = 53;
constexpr size_t kFlagsDigits = 2;
// What later versions may add is bounded here.
constexpr size_t kMaxLength = 512;
constexpr unsigned char kSampledFlag = 1;

// Lower-case hex; upper case is not allowed.
bool IsHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

bool IsZero(absl::string_view digits) {
  return digits.find_first_not_of('0') == absl::string_view::npos;
}

bool IsWellFormed(absl::string_view text) {
  if (text.size() < kTraceParentLength || text.size() > kMaxLength)
    return false;
  // Metadata of gRPC takes nothing else.
  if (!std::all_of(text.begin(), text.end(),
                   [](unsigned char c) { return absl::ascii_isgraph(c); })) {
    return false;
  }
  const absl::string_view version = text.substr(0, kVersionDigits);
  const absl::string_view trace = text.substr(kTraceAt, kTraceDigits);
  const absl::string_view span = text.substr(kSpanAt, kSpanDigits);
  if (text.size() > kTraceParentLength &&
      (version == "00" || text[kTraceParentLength] != '-')) {
    return false;
  }
  return text[kTraceAt - 1] == '-' && text[kSpanAt - 1] == '-' &&
         text[kFlagsAt - 1] == '-' && IsHex(version) && version != "ff" &&
         IsHex(trace) && !IsZero(trace) && IsHex(span) && !IsZero(span) &&
         IsHex(text.substr(kFlagsAt, kFlagsDigits));
}

}  // namespace

absl::StatusOr<TraceParent> ParseTraceParent(absl::string_view text) {
  if (!IsWellFormed(text)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", absl::CHexEscape(text.substr(0, 100)),
        "' is not of W3C's Trace Context; give 00-TRACE-SPAN-FLAGS with 32, 16 "
        "and 2 lower-case hex digits, TRACE and SPAN not 0"));
  }
  TraceParent parent;
  parent.trace_id = absl::HexStringToBytes(text.substr(kTraceAt, kTraceDigits));
  parent.span_id = absl::HexStringToBytes(text.substr(kSpanAt, kSpanDigits));
  const std::string flags =
      absl::HexStringToBytes(text.substr(kFlagsAt, kFlagsDigits));
  parent.sampled =
      (static_cast<unsigned char>(flags.front()) & kSampledFlag) != 0;
  return parent;
}

}  // namespace optfarm::rpc
