#include "storage/s3/s3_errors.h"

#include <initializer_list>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "storage/s3/xml_tree.h"

namespace optfarm::storage {
namespace {

bool IsOneOf(absl::string_view code,
             std::initializer_list<absl::string_view> codes) {
  for (const absl::string_view one : codes) {
    if (code == one) return true;
  }
  return false;
}

struct Refusal {
  std::string code;
  // What is said of it, begun with what was done.
  std::string text;
};

// A store's own words are hostile too: shortened, and without control
// characters.
std::string Quoted(absl::string_view text) {
  return absl::CHexEscape(text.substr(0, 200));
}

Refusal ReadRefusal(const S3Answer& answer, const S3Location& location,
                    absl::string_view doing) {
  Refusal refusal;
  std::string said;
  const absl::StatusOr<XmlElement> body = ParseXml(answer.body);
  if (body.ok() && body->name == "Error") {
    refusal.code = body->ChildText("Code");
    said = absl::StrCat(Quoted(refusal.code), ": ",
                        Quoted(body->ChildText("Message")));
  }
  refusal.text = absl::StrCat(doing, " in s3://", location.bucket, " at ",
                              location.endpoint, ": HTTP status ",
                              answer.status, said.empty() ? "" : ", ", said);
  return refusal;
}

absl::Status WrongKeys(const Refusal& refusal, const S3Location& location) {
  return absl::FailedPreconditionError(absl::StrCat(
      refusal.text,
      "; check the keys and what they may do, that the bucket is in "
      "--s3_region=",
      location.region, ", and that this machine's clock is right"));
}

absl::Status WrongRegion(const Refusal& refusal, const S3Answer& answer,
                         const S3Location& location) {
  return absl::FailedPreconditionError(absl::StrCat(
      refusal.text, "; --s3_region=", location.region,
      " is not the bucket's region", answer.region.empty() ? "" : ", which is ",
      Quoted(answer.region)));
}

}  // namespace

absl::Status StatusOfErrorBody(const S3Answer& answer,
                               const S3Location& location,
                               absl::string_view doing) {
  const Refusal refusal = ReadRefusal(answer, location, doing);
  const absl::string_view code = refusal.code;
  const int status = answer.status;
  if (IsOneOf(code,
              {"QuotaExceeded", "InsufficientStorage", "XMinioStorageFull"}) ||
      status == 507 || status == 413) {
    return absl::ResourceExhaustedError(absl::StrCat(
        refusal.text, "; free space in the bucket or raise its quota"));
  }
  if (IsOneOf(code, {"InternalError", "SlowDown", "ServiceUnavailable",
                     "RequestTimeout", "OperationAborted"}) ||
      (status >= 500 && status != 501) || status == 429 || status == 408) {
    return absl::UnavailableError(
        absl::StrCat(refusal.text, "; try again when the store answers"));
  }
  if (code == "RequestTimeTooSkewed") {
    return absl::FailedPreconditionError(
        absl::StrCat(refusal.text, "; set this machine's clock"));
  }
  if (IsOneOf(code, {"AuthorizationHeaderMalformed", "PermanentRedirect",
                     "TemporaryRedirect"}) ||
      status == 301 || status == 307) {
    return WrongRegion(refusal, answer, location);
  }
  if (status == 401 || status == 403) return WrongKeys(refusal, location);
  if (code == "NoSuchBucket") {
    return absl::FailedPreconditionError(
        absl::StrCat(refusal.text, "; make the bucket first"));
  }
  if (code == "BadDigest" || code == "XAmzContentSHA256Mismatch") {
    return absl::DataLossError(
        absl::StrCat(refusal.text,
                     "; the bytes were damaged on their way: send them again"));
  }
  if (status == 404) return absl::NotFoundError(refusal.text);
  return absl::InternalError(refusal.text);
}

absl::Status StatusOfAnswer(const S3Answer& answer, const S3Location& location,
                            absl::string_view doing) {
  if (answer.status >= 200 && answer.status < 300) return absl::OkStatus();
  return StatusOfErrorBody(answer, location, doing);
}

bool IsPassing(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDataLoss(status);
}

}  // namespace optfarm::storage
