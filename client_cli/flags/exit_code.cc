#include "client_cli/flags/exit_code.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace optfarm::client_cli {
namespace {

constexpr absl::string_view kPayload = "optfarm.org/exit_code";

}  // namespace

absl::Status WithExitCode(const absl::Status& status, ExitCode code) {
  absl::Status marked = status;
  if (!marked.ok() && !marked.GetPayload(kPayload)) {
    marked.SetPayload(kPayload,
                      absl::Cord(absl::StrCat(static_cast<int>(code))));
  }
  return marked;
}

absl::Status UsageError(absl::string_view message) {
  return WithExitCode(absl::InvalidArgumentError(message), ExitCode::kUsage);
}

absl::Status FromServer(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return status;
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return WithExitCode(status, ExitCode::kAuth);
    case absl::StatusCode::kNotFound:
      return WithExitCode(status, ExitCode::kNotFound);
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return WithExitCode(status, ExitCode::kUnavailable);
    case absl::StatusCode::kResourceExhausted:
      return WithExitCode(status, ExitCode::kQuota);
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kOutOfRange:
      return WithExitCode(status, ExitCode::kUsage);
    default:
      return WithExitCode(status, ExitCode::kJobFailed);
  }
}

ExitCode ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return ExitCode::kOk;
  if (const auto payload = status.GetPayload(kPayload)) {
    int code = 0;
    if (absl::SimpleAtoi(std::string(*payload), &code)) {
      return static_cast<ExitCode>(code);
    }
  }
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kOutOfRange:
    // A local file is damaged, or its key is another.
    case absl::StatusCode::kDataLoss:
      return ExitCode::kUsage;
    default:
      return ExitCode::kJobFailed;
  }
}

}  // namespace optfarm::client_cli
