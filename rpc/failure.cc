#include "rpc/failure.h"

#include <string>

#include "absl/strings/match.h"
#include "base/check.h"

namespace optfarm::rpc {
namespace {

v1::Failure MakeFailure(v1::Failure::Kind kind, const absl::Status& status) {
  OPTFARM_CHECK(!status.ok());
  v1::Failure failure;
  failure.set_kind(kind);
  failure.set_code(absl::StatusCodeToString(status.code()));
  failure.set_message(std::string(status.message()));
  return failure;
}

bool IsAboutInput(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kPermissionDenied:
      return true;
    case absl::StatusCode::kResourceExhausted:
      // The words of ErrnoToStatus (base/files.h).
      return !absl::StrContains(status.message(), "disk full");
    default:
      return false;
  }
}

}  // namespace

v1::Failure InternalFailure(const absl::Status& status) {
  return MakeFailure(v1::Failure::INTERNAL, status);
}

v1::Failure UserFailure(const absl::Status& status) {
  return MakeFailure(v1::Failure::USER, status);
}

v1::Failure EngineFailure(const absl::Status& status) {
  return IsAboutInput(status) ? UserFailure(status) : InternalFailure(status);
}

}  // namespace optfarm::rpc
