#include "storage/s3/s3_signature.h"

#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/digest.h"
#include "base/hmac.h"
#include "storage/s3/s3_transport.h"

namespace optfarm::storage {
namespace {

constexpr char kAlgorithm[] = "AWS4-HMAC-SHA256";

std::string Hmac(absl::string_view key, absl::string_view text) {
  return absl::HexStringToBytes(HmacSha256Hex(key, text));
}

// As clients write it into the header Host: without the scheme's own port.
std::string HostOf(absl::string_view url) {
  const bool tls = absl::ConsumePrefix(&url, "https://");
  if (!tls) absl::ConsumePrefix(&url, "http://");
  url = url.substr(0, url.find('/'));
  absl::ConsumeSuffix(&url, tls ? ":443" : ":80");
  return std::string(url);
}

std::string PathOf(absl::string_view url) {
  return std::string(url.substr(url.find('/', url.find("://") + 3)));
}

}  // namespace

std::string PresignedGet(const S3Location& location,
                         const S3Credentials& credentials,
                         absl::string_view key, absl::Time now,
                         absl::Duration valid) {
  const std::string url =
      ObjectUrl(location, absl::StrCat(location.prefix, key));
  const std::string day = absl::FormatTime("%Y%m%d", now, absl::UTCTimeZone());
  const std::string time =
      absl::FormatTime("%Y%m%dT%H%M%SZ", now, absl::UTCTimeZone());
  const std::string scope =
      absl::StrCat(day, "/", location.region, "/s3/aws4_request");
  // In the order of their names.
  std::vector<std::pair<std::string, std::string>> query = {
      {"X-Amz-Algorithm", kAlgorithm},
      {"X-Amz-Credential", absl::StrCat(credentials.access_key, "/", scope)},
      {"X-Amz-Date", time},
      {"X-Amz-Expires", absl::StrCat(absl::ToInt64Seconds(valid))}};
  if (!credentials.session_token.empty()) {
    query.emplace_back("X-Amz-Security-Token", credentials.session_token);
  }
  query.emplace_back("X-Amz-SignedHeaders", "host");
  std::string parameters;
  for (const auto& [name, value] : query) {
    absl::StrAppend(&parameters, parameters.empty() ? "" : "&", name, "=",
                    PercentEncoded(value));
  }
  const std::string canonical =
      absl::StrCat("GET\n", PathOf(url), "\n", parameters,
                   "\nhost:", HostOf(url), "\n\nhost\nUNSIGNED-PAYLOAD");
  const std::string to_sign = absl::StrCat(kAlgorithm, "\n", time, "\n", scope,
                                           "\n", Sha256Hex(canonical));
  std::string signing_key =
      Hmac(absl::StrCat("AWS4", credentials.secret_key), day);
  for (const absl::string_view part :
       {absl::string_view(location.region), absl::string_view("s3"),
        absl::string_view("aws4_request")}) {
    signing_key = Hmac(signing_key, part);
  }
  return absl::StrCat(url, "?", parameters,
                      "&X-Amz-Signature=", HmacSha256Hex(signing_key, to_sign));
}

}  // namespace optfarm::storage
