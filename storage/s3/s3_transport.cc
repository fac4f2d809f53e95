#include "storage/s3/s3_transport.h"

#include <curl/curl.h>

#include <algorithm>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/check.h"
#include "base/digest.h"

namespace optfarm::storage {
namespace {

constexpr size_t kMaxHeaderBytes = 64 << 10;
constexpr size_t kMaxIdleConnections = 16;
// Slower than this for as long as a stall may last is a stall.
constexpr long kSlowestBytesPerSecond = 64;
// What a request may take in all: a stall, and its bytes at this rate.
constexpr int64_t kSlowestTransfer = 16 << 10;

// What callbacks of one request fill.
struct Incoming {
  S3Answer answer;
  int64_t max_bytes = 0;
  size_t header_bytes = 0;
  // The empty line after the headers has come: none of them is cut.
  bool head_complete = false;
  bool too_large = false;
};

size_t TakeBody(char* data, size_t size, size_t count, void* user) {
  Incoming& in = *static_cast<Incoming*>(user);
  const size_t bytes = size * count;
  if (static_cast<int64_t>(bytes) >
      in.max_bytes - static_cast<int64_t>(in.answer.body.size())) {
    in.too_large = true;
    return 0;
  }
  in.answer.body.append(data, bytes);
  return bytes;
}

void TakeHeader(absl::string_view name, absl::string_view value,
                S3Answer& answer) {
  if (absl::EqualsIgnoreCase(name, "etag")) {
    answer.etag = std::string(value);
  } else if (absl::EqualsIgnoreCase(name, "content-length")) {
    if (!absl::SimpleAtoi(value, &answer.content_length)) {
      answer.content_length = -1;
    }
  } else if (absl::EqualsIgnoreCase(name, "content-range")) {
    // "bytes 0-9/100"
    const size_t slash = value.rfind('/');
    if (slash == absl::string_view::npos ||
        !absl::SimpleAtoi(value.substr(slash + 1), &answer.object_bytes)) {
      answer.object_bytes = -1;
    }
  } else if (absl::EqualsIgnoreCase(name, "x-amz-bucket-region")) {
    answer.region = std::string(value.substr(0, 64));
  } else if (absl::EqualsIgnoreCase(name, "x-amz-server-side-encryption") ||
             absl::EqualsIgnoreCase(
                 name, "x-amz-server-side-encryption-customer-algorithm")) {
    answer.encrypted = !absl::EqualsIgnoreCase(value, "AES256") ||
                       absl::EndsWithIgnoreCase(name, "algorithm");
  }
}

size_t TakeHeaderLine(char* data, size_t size, size_t count, void* user) {
  Incoming& in = *static_cast<Incoming*>(user);
  const absl::string_view line(data, size * count);
  in.header_bytes += line.size();
  if (in.header_bytes > kMaxHeaderBytes) {
    in.too_large = true;
    return 0;
  }
  // Of the last answer only: "100 Continue" is one too.
  if (absl::StartsWith(line, "HTTP/")) {
    in.answer = S3Answer();
    in.head_complete = false;
  }
  // What comes behind the body is nothing that is asked for.
  if (in.head_complete) return line.size();
  in.head_complete = absl::StripAsciiWhitespace(line).empty();
  const size_t colon = line.find(':');
  if (colon != absl::string_view::npos) {
    TakeHeader(line.substr(0, colon),
               absl::StripAsciiWhitespace(line.substr(colon + 1)), in.answer);
  }
  return line.size();
}

// The endpoint and the bucket in it, without a '/' at the end.
std::string BucketUrl(const S3Location& location) {
  if (location.path_style) {
    return absl::StrCat(location.endpoint, "/", location.bucket);
  }
  const size_t host = location.endpoint.find("://") + 3;
  return absl::StrCat(location.endpoint.substr(0, host), location.bucket, ".",
                      location.endpoint.substr(host));
}

std::string UrlOf(const S3Location& location, const S3Request& request) {
  std::string url = ObjectUrl(location, request.key);
  char separator = '?';
  for (const auto& [name, value] : request.query) {
    url += separator;
    absl::StrAppend(&url, PercentEncoded(name), "=", PercentEncoded(value));
    separator = '&';
  }
  return url;
}

class Headers {
 public:
  ~Headers() { curl_slist_free_all(list_); }
  void Add(const std::string& line) {
    curl_slist* longer = curl_slist_append(list_, line.c_str());
    OPTFARM_CHECK(longer != nullptr);
    list_ = longer;
  }
  curl_slist* list() const { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

long Milliseconds(absl::Duration duration) {
  return static_cast<long>(absl::ToInt64Milliseconds(duration));
}

void SetMethod(CURL* curl, const S3Request& request) {
  if (request.method == "GET") {
    curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
  } else if (request.method == "HEAD") {
    curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  } else if (request.method == "DELETE") {
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, "DELETE");
  } else {
    curl_easy_setopt(curl, CURLOPT_POST, 1L);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS,
                     request.body.empty() ? "" : request.body.data());
  }
}

void SetLimits(CURL* curl, const S3TransportOptions& options,
               const S3Request& request) {
  const int64_t bytes = std::max<int64_t>(
      static_cast<int64_t>(request.body.size()), request.max_answer_bytes);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                   Milliseconds(options.connect_timeout));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, kSlowestBytesPerSecond);
  curl_easy_setopt(
      curl, CURLOPT_LOW_SPEED_TIME,
      std::max(1L,
               static_cast<long>(absl::ToInt64Seconds(options.stall_timeout))));
  curl_easy_setopt(
      curl, CURLOPT_TIMEOUT_MS,
      Milliseconds(options.connect_timeout + options.stall_timeout +
                   absl::Seconds(bytes / kSlowestTransfer)));
}

void Sign(CURL* curl, const S3TransportOptions& options,
          const S3Request& request, Headers& headers) {
  const S3Credentials& keys = options.credentials;
  curl_easy_setopt(
      curl, CURLOPT_AWS_SIGV4,
      absl::StrCat("aws:amz:", options.location.region, ":s3").c_str());
  curl_easy_setopt(curl, CURLOPT_USERNAME, keys.access_key.c_str());
  curl_easy_setopt(curl, CURLOPT_PASSWORD, keys.secret_key.c_str());
  // The store checks the body against it. curl does not send it by itself.
  headers.Add(absl::StrCat("x-amz-content-sha256: ", Sha256Hex(request.body)));
  if (!keys.session_token.empty()) {
    headers.Add(absl::StrCat("x-amz-security-token: ", keys.session_token));
  }
}

}  // namespace

// Handles that are not in use, each with its open connection.
class S3Transport::Connections {
 public:
  ~Connections() {
    for (CURL* curl : idle_) curl_easy_cleanup(curl);
  }
  CURL* Take() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (idle_.empty()) return curl_easy_init();
    CURL* curl = idle_.back();
    idle_.pop_back();
    return curl;
  }
  void Return(CURL* curl) ABSL_LOCKS_EXCLUDED(mutex_) {
    // Forgets what was set, keys too, and keeps the connection.
    curl_easy_reset(curl);
    absl::MutexLock lock(&mutex_);
    if (idle_.size() < kMaxIdleConnections) {
      idle_.push_back(curl);
    } else {
      curl_easy_cleanup(curl);
    }
  }

 private:
  absl::Mutex mutex_;
  std::vector<CURL*> idle_ ABSL_GUARDED_BY(mutex_);
};

S3Transport::S3Transport(S3TransportOptions options)
    : options_(std::move(options)),
      connections_(std::make_unique<Connections>()) {
  static const CURLcode initialized = curl_global_init(CURL_GLOBAL_DEFAULT);
  OPTFARM_CHECK(initialized == CURLE_OK);
}

S3Transport::~S3Transport() = default;

absl::StatusOr<S3Answer> S3Transport::Send(const S3Request& request) {
  CURL* curl = connections_->Take();
  if (curl == nullptr) {
    return absl::ResourceExhaustedError("no memory for a connection");
  }
  Incoming in;
  in.max_bytes = request.max_answer_bytes;
  Headers headers;
  curl_easy_setopt(curl, CURLOPT_URL,
                   UrlOf(options_.location, request).c_str());
  SetMethod(curl, request);
  SetLimits(curl, options_, request);
  Sign(curl, options_, request, headers);
  headers.Add("Content-Type: application/octet-stream");
  std::string range;
  if (request.first_byte >= 0) {
    range = absl::StrCat(request.first_byte, "-", request.last_byte);
    curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());
  }
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.list());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, TakeBody);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &in);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, TakeHeaderLine);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &in);
  const CURLcode result = curl_easy_perform(curl);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  connections_->Return(curl);
  if (in.too_large) {
    return absl::DataLossError(
        absl::StrCat("the answer of ", options_.location.endpoint,
                     " is larger than the ", in.max_bytes, " bytes asked for"));
  }
  if (result != CURLE_OK || !in.head_complete) {
    return absl::UnavailableError(
        absl::StrCat(options_.location.endpoint, ": ",
                     result == CURLE_OK ? "the answer ends within its headers"
                                        : curl_easy_strerror(result)));
  }
  in.answer.status = static_cast<int>(status);
  if (in.answer.object_bytes < 0 && status == 200) {
    in.answer.object_bytes = in.answer.content_length;
  }
  return std::move(in.answer);
}

std::string ObjectUrl(const S3Location& location, absl::string_view key) {
  return absl::StrCat(BucketUrl(location), "/", key);
}

std::string PercentEncoded(absl::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    if (absl::ascii_isalnum(c) || c == '-' || c == '.' || c == '_' ||
        c == '~') {
      encoded += c;
      continue;
    }
    const unsigned char byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += kDigits[byte >> 4];
    encoded += kDigits[byte & 15];
  }
  return encoded;
}

}  // namespace optfarm::storage
