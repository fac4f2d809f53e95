#include "server/call_door.h"

#include <grpcpp/server_context.h>

#include "absl/strings/match.h"
#include "base/digest.h"
#include "base/log.h"
#include "rpc/channel.h"
#include "rpc/status.h"

namespace optfarm::server {
namespace {

// Looks at every byte, whatever the first difference is.
bool SameBytes(absl::string_view a, absl::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

}  // namespace

CallDoor::CallDoor(const std::string& token)
    : token_hash_(token.empty() ? "" : Sha256Hex(token)) {}

absl::Status CallDoor::Admit(const grpc::ServerContextBase& context) const {
  if (token_hash_.empty()) return absl::OkStatus();
  const auto& metadata = context.client_metadata();
  const auto range = metadata.equal_range(rpc::kAuthorizationKey);
  for (auto entry = range.first; entry != range.second; ++entry) {
    const absl::string_view value(entry->second.data(), entry->second.size());
    if (!absl::StartsWith(value, rpc::kBearerPrefix)) continue;
    const absl::string_view token =
        value.substr(absl::string_view(rpc::kBearerPrefix).size());
    if (SameBytes(Sha256Hex(token), token_hash_)) return absl::OkStatus();
  }
  return absl::UnauthenticatedError(
      range.first == range.second
          ? "this server wants a bearer token; give --token_file"
          : "the bearer token is not this server's; check --token_file");
}

grpc::Status CallDoor::Answer(const absl::Status& status) {
  if (status.code() == absl::StatusCode::kInternal ||
      status.code() == absl::StatusCode::kUnknown ||
      status.code() == absl::StatusCode::kDataLoss) {
    LogError("answering a call with ", status.ToString());
  }
  return rpc::ToGrpc(status);
}

}  // namespace optfarm::server
