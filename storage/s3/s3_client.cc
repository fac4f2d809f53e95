#include "storage/s3/s3_client.h"

#include <algorithm>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "base/resumable_sha256.h"
#include "base/status_macros.h"
#include "storage/s3/xml_tree.h"

namespace optfarm::storage {
namespace {

constexpr int64_t kMaxPageBytes = int64_t{8} << 20;
constexpr size_t kMaxEtag = 256;
constexpr size_t kMaxUploadId = 2048;

// Calls `attempt` until it succeeds, fails for good, or time or attempts are
// used up; returns what the last one returned.
template <typename Attempt>
auto WithRetries(const S3ClientOptions& options, const Attempt& attempt) {
  const absl::Time begin = absl::Now();
  absl::Duration pause = options.first_pause;
  for (int number = 1;; ++number) {
    auto result = attempt();
    if (result.ok() || !IsPassing(result.status()) ||
        number >= options.max_attempts) {
      return result;
    }
    absl::BitGen random;
    const absl::Duration wait = pause * absl::Uniform(random, 0.5, 1.0);
    if (absl::Now() - begin + wait > options.give_up_after) return result;
    LogDebug("trying again in ", absl::FormatDuration(wait), ": ",
             result.status().message());
    absl::SleepFor(wait);
    pause = std::min(2 * pause, options.longest_pause);
  }
}

bool IsMd5(absl::string_view text) {
  return text.size() == 32 &&
         std::all_of(text.begin(), text.end(), absl::ascii_isxdigit);
}

absl::string_view Unquoted(absl::string_view etag) {
  absl::ConsumePrefix(&etag, "\"");
  absl::ConsumeSuffix(&etag, "\"");
  return etag;
}

// Goes into the text of a later request.
bool IsEtag(absl::string_view etag) {
  return !etag.empty() && etag.size() <= kMaxEtag &&
         std::all_of(etag.begin(), etag.end(), [](char c) {
           return absl::ascii_isgraph(c) && c != '<' && c != '&' && c != '>';
         });
}

absl::Status Strange(absl::string_view doing, absl::string_view what) {
  return absl::UnavailableError(
      absl::StrCat(doing, ": the store's answer is not that of S3: ", what,
                   "; check --s3_endpoint"));
}

absl::Time ReadTime(const std::string& text) {
  absl::Time time;
  std::string error;
  if (absl::ParseTime(absl::RFC3339_full, text, &time, &error)) return time;
  return absl::UnixEpoch();
}

// A text without what is before it; empty where that is not before it.
std::string Below(absl::string_view prefix, absl::string_view key) {
  return absl::ConsumePrefix(&key, prefix) ? std::string(key) : "";
}

}  // namespace

S3Client::S3Client(const S3ClientOptions& options)
    : options_(options), transport_(options.transport) {}

S3Request S3Client::Request(absl::string_view method,
                            absl::string_view key) const {
  S3Request request;
  request.method = std::string(method);
  request.key = absl::StrCat(location().prefix, key);
  return request;
}

absl::StatusOr<S3Answer> S3Client::SendOnce(const S3Request& request,
                                            absl::string_view doing) {
  absl::StatusOr<S3Answer> answer = transport_.Send(request);
  if (!answer.ok()) return Annotate(answer.status(), doing);
  OPTFARM_RETURN_IF_ERROR(StatusOfAnswer(*answer, location(), doing));
  return answer;
}

absl::StatusOr<S3Answer> S3Client::Send(const S3Request& request,
                                        absl::string_view doing) {
  return WithRetries(options_, [&] { return SendOnce(request, doing); });
}

absl::Status S3Client::Check() {
  S3Request request;
  request.method = "GET";
  request.query = {{"list-type", "2"}, {"max-keys", "1"}};
  if (!location().prefix.empty()) {
    request.query.emplace_back("prefix", location().prefix);
  }
  absl::StatusOr<S3Answer> answer = Send(request, "looking for the bucket");
  if (absl::IsNotFound(answer.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat(answer.status().message(), "; make the bucket first"));
  }
  if (!answer.ok()) return answer.status();
  const absl::StatusOr<XmlElement> page = ParseXml(answer->body);
  if (page.ok() && page->name == "ListBucketResult") return absl::OkStatus();
  return Strange("looking for the bucket", "it lists no bucket");
}

absl::Status S3Client::Put(absl::string_view key, absl::string_view bytes) {
  S3Request request = Request("PUT", key);
  request.body = bytes;
  return Send(request, absl::StrCat("writing ", key)).status();
}

absl::StatusOr<std::string> S3Client::Get(absl::string_view key, int64_t offset,
                                          int64_t length,
                                          int64_t object_bytes) {
  S3Request request = Request("GET", key);
  request.first_byte = offset;
  request.last_byte = offset + length - 1;
  // An error's body may be longer than the range.
  request.max_answer_bytes = std::max<int64_t>(length, 64 << 10);
  const std::string doing = absl::StrCat("reading ", key);
  OPTFARM_ASSIGN_OR_RETURN(S3Answer answer, Send(request, doing));
  if (answer.object_bytes != object_bytes ||
      static_cast<int64_t>(answer.body.size()) != length) {
    return absl::DataLossError(absl::StrCat(
        doing, ": ", answer.body.size(), " of ", length,
        " bytes came, of an object of ", answer.object_bytes, " and not ",
        object_bytes, " bytes; restore it or upload it again"));
  }
  return std::move(answer.body);
}

absl::StatusOr<int64_t> S3Client::SizeOf(absl::string_view key) {
  const std::string doing = absl::StrCat("looking for ", key);
  OPTFARM_ASSIGN_OR_RETURN(const S3Answer answer,
                           Send(Request("HEAD", key), doing));
  if (answer.content_length < 0) return Strange(doing, "it has no size");
  return answer.content_length;
}

absl::Status S3Client::Delete(absl::string_view key) {
  const absl::Status status =
      Send(Request("DELETE", key), absl::StrCat("deleting ", key)).status();
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::StatusOr<S3ObjectPage> S3Client::List(absl::string_view folder,
                                            absl::string_view from) {
  S3Request request;
  request.method = "GET";
  if (!from.empty()) {
    request.query.emplace_back("continuation-token", std::string(from));
  }
  request.query.emplace_back("list-type", "2");
  request.query.emplace_back("prefix", absl::StrCat(location().prefix, folder));
  request.max_answer_bytes = kMaxPageBytes;
  OPTFARM_ASSIGN_OR_RETURN(const S3Answer answer,
                           Send(request, "listing objects"));
  const absl::StatusOr<XmlElement> page = ParseXml(answer.body);
  if (!page.ok()) return Strange("listing objects", page.status().message());
  S3ObjectPage objects;
  for (const XmlElement& child : page->children) {
    if (child.name != "Contents") continue;
    S3Object object;
    object.key = Below(location().prefix, child.ChildText("Key"));
    object.modified = ReadTime(child.ChildText("LastModified"));
    if (!absl::SimpleAtoi(child.ChildText("Size"), &object.size_bytes) ||
        object.size_bytes < 0) {
      return Strange("listing objects", "an object has no size");
    }
    objects.objects.push_back(std::move(object));
  }
  if (page->ChildText("IsTruncated") == "true") {
    objects.next = page->ChildText("NextContinuationToken");
    if (objects.next.empty() || objects.next == from) {
      return Strange("listing objects", "its next page is missing");
    }
  }
  return objects;
}

absl::StatusOr<std::string> S3Client::BeginUpload(absl::string_view key) {
  S3Request request = Request("POST", key);
  request.query = {{"uploads", ""}};
  const std::string doing = absl::StrCat("beginning to write ", key);
  OPTFARM_ASSIGN_OR_RETURN(const S3Answer answer, Send(request, doing));
  const absl::StatusOr<XmlElement> body = ParseXml(answer.body);
  const std::string id = body.ok() ? body->ChildText("UploadId") : "";
  if (id.empty() || id.size() > kMaxUploadId) {
    return Strange(doing, "it names no upload");
  }
  return id;
}

// The store checks the body's hash. The ETag shows that what it keeps under
// the part's number is this body.
absl::StatusOr<std::string> S3Client::PutPartOnce(const S3Request& request,
                                                  absl::string_view doing) {
  OPTFARM_ASSIGN_OR_RETURN(const S3Answer answer, SendOnce(request, doing));
  if (!IsEtag(answer.etag)) return Strange(doing, "it has no ETag");
  const absl::string_view etag = Unquoted(answer.etag);
  if (IsMd5(etag) && !answer.encrypted &&
      !absl::EqualsIgnoreCase(etag, Md5Hex(request.body))) {
    return absl::DataLossError(absl::StrCat(
        doing, ": the store's ETag ", answer.etag,
        " is not that of the part; check the network and what stands between "
        "this server and the store"));
  }
  return answer.etag;
}

absl::StatusOr<std::string> S3Client::PutPart(absl::string_view key,
                                              absl::string_view upload_id,
                                              int number,
                                              absl::string_view bytes) {
  S3Request request = Request("PUT", key);
  request.query = {{"partNumber", absl::StrCat(number)},
                   {"uploadId", std::string(upload_id)}};
  request.body = bytes;
  const std::string doing = absl::StrCat("writing part ", number, " of ", key);
  return WithRetries(options_, [&] { return PutPartOnce(request, doing); });
}

absl::Status S3Client::CompleteUpload(absl::string_view key,
                                      absl::string_view upload_id,
                                      const std::vector<std::string>& etags) {
  std::string body = "<CompleteMultipartUpload>";
  for (size_t i = 0; i < etags.size(); ++i) {
    absl::StrAppend(&body, "<Part><PartNumber>", i + 1, "</PartNumber><ETag>",
                    etags[i], "</ETag></Part>");
  }
  body += "</CompleteMultipartUpload>";
  S3Request request = Request("POST", key);
  request.query = {{"uploadId", std::string(upload_id)}};
  request.body = body;
  const std::string doing = absl::StrCat("ending the upload of ", key);
  const auto attempt = [&]() -> absl::StatusOr<S3Answer> {
    OPTFARM_ASSIGN_OR_RETURN(S3Answer answer, SendOnce(request, doing));
    const absl::StatusOr<XmlElement> said = ParseXml(answer.body);
    // The store may begin with 200 before it knows how it ends.
    if (said.ok() && said->name == "Error") {
      return StatusOfErrorBody(answer, location(), doing);
    }
    if (!said.ok()) return Strange(doing, said.status().message());
    return answer;
  };
  return WithRetries(options_, attempt).status();
}

absl::Status S3Client::AbortUpload(absl::string_view key,
                                   absl::string_view upload_id) {
  S3Request request = Request("DELETE", key);
  request.query = {{"uploadId", std::string(upload_id)}};
  const absl::Status status =
      Send(request, absl::StrCat("giving up the upload of ", key)).status();
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::StatusOr<S3UploadPage> S3Client::ListUploads(absl::string_view folder,
                                                   absl::string_view from_key,
                                                   absl::string_view from_id) {
  S3Request request;
  request.method = "GET";
  if (!from_key.empty()) {
    request.query.emplace_back("key-marker", std::string(from_key));
  }
  request.query.emplace_back("prefix", absl::StrCat(location().prefix, folder));
  if (!from_key.empty()) {
    request.query.emplace_back("upload-id-marker", std::string(from_id));
  }
  request.query.emplace_back("uploads", "");
  request.max_answer_bytes = kMaxPageBytes;
  OPTFARM_ASSIGN_OR_RETURN(const S3Answer answer,
                           Send(request, "listing uploads"));
  const absl::StatusOr<XmlElement> page = ParseXml(answer.body);
  if (!page.ok()) return Strange("listing uploads", page.status().message());
  S3UploadPage uploads;
  for (const XmlElement& child : page->children) {
    if (child.name != "Upload") continue;
    uploads.uploads.push_back({Below(location().prefix, child.ChildText("Key")),
                               child.ChildText("UploadId"),
                               ReadTime(child.ChildText("Initiated"))});
  }
  if (page->ChildText("IsTruncated") == "true") {
    uploads.next_key = page->ChildText("NextKeyMarker");
    uploads.next_id = page->ChildText("NextUploadIdMarker");
    if (uploads.next_key.empty() ||
        (uploads.next_key == from_key && uploads.next_id == from_id)) {
      return Strange("listing uploads", "its next page is missing");
    }
  }
  return uploads;
}

}  // namespace optfarm::storage
