#include "server/scheduling/device_choice.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "rpc/proto_time.h"
#include "server/conventions/log_text.h"
#include "server/conventions/names.h"

namespace optfarm::server {
namespace {

constexpr char kAny[] = "any:";
constexpr size_t kMaxReasonBytes = 500;
constexpr size_t kMaxTagBytes = 100;
constexpr absl::Duration kLongestReservation = absl::Hours(24 * 30);

absl::Status Wrong(const v1::ChangeDeviceRequest& change,
                   absl::string_view problem) {
  return absl::InvalidArgumentError(
      absl::StrCat("changing device ", change.name(), ": ", problem));
}

}  // namespace

std::optional<absl::string_view> PoolOf(absl::string_view asked) {
  if (!absl::ConsumePrefix(&asked, kAny)) return std::nullopt;
  return asked;
}

absl::Status CheckAskedDevice(absl::string_view asked) {
  const std::optional<absl::string_view> tag = PoolOf(asked);
  return tag.has_value() ? CheckName("tag of devices", *tag)
                         : CheckName("device", asked);
}

std::vector<std::string> WaysToAskFor(const v1::DeviceInfo& device) {
  std::vector<std::string> ways = {device.name()};
  for (const std::string& tag : device.tags()) {
    ways.push_back(absl::StrCat(kAny, tag));
  }
  return ways;
}

absl::StatusOr<v1::ChangeDeviceRequest> KeptChange(
    const v1::ChangeDeviceRequest& change, absl::Time now) {
  v1::ChangeDeviceRequest kept = change;
  kept.set_reason(std::string(CutText(change.reason(), kMaxReasonBytes)));
  kept.clear_duration();
  kept.clear_until();
  switch (change.change()) {
    case v1::ChangeDeviceRequest::DISABLE:
    case v1::ChangeDeviceRequest::ENABLE:
    case v1::ChangeDeviceRequest::RETIRE:
      kept.clear_tag();
      return kept;
    case v1::ChangeDeviceRequest::RESERVE:
      break;
    default:
      return Wrong(change,
                   absl::StrCat("change ", static_cast<int>(change.change()),
                                " is unknown; say DISABLE, ENABLE, RETIRE or "
                                "RESERVE"));
  }
  const absl::Duration term = rpc::FromProtoDuration(change.duration());
  if (term <= absl::ZeroDuration() || term > kLongestReservation) {
    return Wrong(change,
                 absl::StrCat("a reservation for ", absl::FormatDuration(term),
                              " is not possible; give a duration of up "
                              "to 30 days"));
  }
  if (change.tag().size() > kMaxTagBytes) {
    return Wrong(
        change, absl::StrCat("a tag of ", change.tag().size(),
                             " bytes; jobs have tags of up to ", kMaxTagBytes));
  }
  *kept.mutable_until() = rpc::ToTimestamp(now + term);
  return kept;
}

bool IsReserved(const v1::ChangeDeviceRequest& change, absl::Time now) {
  return change.change() == v1::ChangeDeviceRequest::RESERVE &&
         now < rpc::FromTimestamp(change.until());
}

}  // namespace optfarm::server
