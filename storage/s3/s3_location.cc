#include "storage/s3/s3_location.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "base/status_macros.h"

namespace optfarm::storage {
namespace {

constexpr uint64_t kMaxCredentialsBytes = 64 << 10;
// Leaves room for blobs/aa/SHA256 in a key's 1,024 bytes.
constexpr size_t kMaxPrefix = 512;

template <typename Allowed>
bool AllOf(absl::string_view text, const Allowed& allowed) {
  for (const char c : text) {
    if (!allowed(c)) return false;
  }
  return true;
}

bool IsNameCharacter(char c) {
  return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-' ||
         c == '.';
}

absl::Status Wrong(absl::string_view what, absl::string_view value,
                   absl::string_view advice) {
  return absl::InvalidArgumentError(
      absl::StrCat(what, " '", absl::CHexEscape(value.substr(0, 200)),
                   "' cannot be used: ", advice));
}

absl::Status CheckBucket(absl::string_view bucket, bool path_style) {
  if (bucket.size() < 3 || bucket.size() > 63 ||
      !AllOf(bucket, IsNameCharacter) || !absl::ascii_isalnum(bucket.front()) ||
      !absl::ascii_isalnum(bucket.back()) || absl::StrContains(bucket, "..")) {
    return Wrong("the bucket", bucket,
                 "a bucket's name has 3 to 63 lower-case letters, digits, dots "
                 "and hyphens");
  }
  if (!path_style && absl::StrContains(bucket, '.')) {
    return Wrong("the bucket", bucket,
                 "a name with a dot needs --s3_path_style");
  }
  return absl::OkStatus();
}

// Keys of these characters are the same in a URL, in a signature and in a list.
absl::Status CheckPrefix(absl::string_view prefix) {
  const auto allowed = [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.' ||
           c == '/';
  };
  bool good = prefix.size() <= kMaxPrefix && AllOf(prefix, allowed);
  for (absl::string_view piece : absl::StrSplit(prefix, '/')) {
    good &= piece != "." && piece != ".." && (!piece.empty() || prefix.empty());
  }
  if (good) return absl::OkStatus();
  return Wrong("the prefix", prefix,
               "use at most 512 letters, digits, '.', '_' and '-', with single "
               "slashes between names");
}

absl::Status CheckEndpoint(absl::string_view endpoint) {
  absl::string_view rest = endpoint;
  const bool scheme = absl::ConsumePrefix(&rest, "https://") ||
                      absl::ConsumePrefix(&rest, "http://");
  const auto allowed = [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '.' || c == ':' ||
           c == '[' || c == ']';
  };
  if (scheme && !rest.empty() && rest.size() < 256 && AllOf(rest, allowed)) {
    return absl::OkStatus();
  }
  return Wrong("--s3_endpoint", endpoint,
               "write http://HOST:PORT or https://HOST:PORT, without a path");
}

// The value after "NAME =", or nothing.
bool TakeValue(absl::string_view line, absl::string_view name,
               std::string& value) {
  const std::vector<absl::string_view> sides =
      absl::StrSplit(line, absl::MaxSplits('=', 1));
  if (sides.size() != 2 || absl::StripAsciiWhitespace(sides[0]) != name) {
    return false;
  }
  value = std::string(absl::StripAsciiWhitespace(sides[1]));
  return true;
}

S3Credentials ParseCredentials(absl::string_view text) {
  S3Credentials keys;
  int profiles = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (absl::StartsWith(line, "[") && ++profiles > 1) break;
    if (TakeValue(line, "aws_access_key_id", keys.access_key)) continue;
    if (TakeValue(line, "aws_secret_access_key", keys.secret_key)) continue;
    TakeValue(line, "aws_session_token", keys.session_token);
  }
  return keys;
}

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// They become headers: a line break in one would begin another.
bool IsKey(absl::string_view text) {
  return !text.empty() && text.size() <= 4096 &&
         AllOf(text, [](char c) { return absl::ascii_isgraph(c); });
}

}  // namespace

absl::StatusOr<S3Location> ParseS3Location(absl::string_view url,
                                           absl::string_view endpoint,
                                           absl::string_view region,
                                           bool path_style) {
  absl::string_view rest = url;
  if (!absl::ConsumePrefix(&rest, "s3://")) {
    return Wrong("--blobs", url, "write s3://BUCKET/PREFIX or file:FOLDER");
  }
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(rest, absl::MaxSplits('/', 1));
  S3Location location;
  location.path_style = path_style;
  location.bucket = std::string(parts.first);
  OPTFARM_RETURN_IF_ERROR(CheckBucket(location.bucket, path_style));
  location.prefix = std::string(absl::StripSuffix(parts.second, "/"));
  OPTFARM_RETURN_IF_ERROR(CheckPrefix(location.prefix));
  if (!location.prefix.empty()) location.prefix += '/';
  if (!region.empty()) location.region = std::string(region);
  if (location.region.size() > 64 || !AllOf(location.region, IsNameCharacter)) {
    return Wrong("--s3_region", region, "write a name such as eu-central-1");
  }
  location.endpoint = std::string(absl::StripSuffix(endpoint, "/"));
  if (location.endpoint.empty()) {
    location.endpoint =
        absl::StrCat("https://s3.", location.region, ".amazonaws.com");
  }
  OPTFARM_RETURN_IF_ERROR(CheckEndpoint(location.endpoint));
  return location;
}

absl::StatusOr<S3Credentials> ReadS3Credentials(const std::string& file) {
  S3Credentials keys;
  if (file.empty()) {
    keys = {Environment("AWS_ACCESS_KEY_ID"),
            Environment("AWS_SECRET_ACCESS_KEY"),
            Environment("AWS_SESSION_TOKEN")};
  } else {
    OPTFARM_ASSIGN_OR_RETURN(const std::string text,
                             ReadFile(file, kMaxCredentialsBytes));
    keys = ParseCredentials(text);
  }
  if (IsKey(keys.access_key) && IsKey(keys.secret_key) &&
      (keys.session_token.empty() || IsKey(keys.session_token))) {
    return keys;
  }
  if (file.empty()) {
    return absl::FailedPreconditionError(
        "the object store needs keys: set AWS_ACCESS_KEY_ID and "
        "AWS_SECRET_ACCESS_KEY, or give --s3_credentials_file");
  }
  return absl::FailedPreconditionError(
      absl::StrCat("'", file,
                   "' holds no keys for the object store: it needs the lines "
                   "aws_access_key_id = ... and aws_secret_access_key = ..."));
}

}  // namespace optfarm::storage
