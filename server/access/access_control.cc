#include "server/access/access_control.h"

#include <google/protobuf/descriptor.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/authenticated_encryption.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "rpc/channel.h"
#include "server/access/farm_services.h"
#include "server/conventions/names.h"

namespace optfarm::server {
namespace {

using ::google::protobuf::MethodDescriptor;

constexpr size_t kSecretBytes = 32;
constexpr size_t kIdBytes = 8;
constexpr int kMaxLiveTokens = 10000;
constexpr absl::Duration kRemembered = absl::Hours(24 * 90);
// So that a secret that leaked into a file or a log is found by searching.
constexpr char kSecretPrefix[] = "oft_";

unsigned Bit(v1::Access::Scope scope) {
  return 1u << static_cast<unsigned>(scope);
}

// Looks at every byte, whatever the first difference is.
bool SameBytes(absl::string_view a, absl::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

unsigned WantedBy(const MethodDescriptor& method) {
  unsigned bits = Bit(v1::Access::ADMIN);
  for (int i = 0; i < method.options().ExtensionSize(v1::scopes); ++i) {
    bits |= Bit(method.options().GetExtension(v1::scopes, i));
  }
  return bits;
}

std::string ScopeNames(unsigned bits, absl::string_view conjunction) {
  std::vector<std::string> names;
  for (int scope = v1::Access::SUBMIT; scope <= v1::Access::Scope_MAX;
       ++scope) {
    const auto one = static_cast<v1::Access::Scope>(scope);
    if ((bits & Bit(one)) != 0) {
      names.push_back(absl::AsciiStrToLower(v1::Access::Scope_Name(one)));
    }
  }
  return absl::StrJoin(names, conjunction);
}

bool IsLive(const storage::TokenRecord& token, absl::Time now) {
  return token.revoke_time == absl::InfinitePast() && now < token.expire_time;
}

}  // namespace

bool Caller::May(v1::Access::Scope scope) const {
  return (scopes & (Bit(scope) | Bit(v1::Access::ADMIN))) != 0;
}

bool Caller::OfFarm() const {
  return May(v1::Access::WORK) || May(v1::Access::DEVICE);
}

std::optional<std::string> Caller::OnlyProject() const {
  if (OfFarm()) return std::nullopt;
  return project;
}

AccessControl::AccessControl(const std::string& operator_token,
                             storage::TokenStore& store, Clock& clock)
    : operator_hash_(operator_token.empty() ? "" : Sha256Hex(operator_token)),
      store_(store),
      clock_(clock) {
  for (const MethodDescriptor* method : FarmMethods()) {
    wanted_[method->full_name()] = WantedBy(*method);
    if (method->options().GetExtension(v1::audited)) {
      audited_.insert(method->full_name());
    }
  }
}

absl::StatusOr<std::unique_ptr<AccessControl>> AccessControl::Load(
    const std::string& operator_token, storage::TokenStore& store,
    Clock& clock) {
  std::unique_ptr<AccessControl> access(
      new AccessControl(operator_token, store, clock));
  OPTFARM_RETURN_IF_ERROR(store.ForgetEnded(clock.Now() - kRemembered));
  OPTFARM_RETURN_IF_ERROR(access->Reload());
  return access;
}

std::unique_ptr<AccessControl> AccessControl::Follow(
    const std::string& operator_token, storage::TokenStore& store,
    Clock& clock) {
  return std::unique_ptr<AccessControl>(
      new AccessControl(operator_token, store, clock));
}

absl::Status AccessControl::Reload() {
  OPTFARM_ASSIGN_OR_RETURN(std::vector<storage::TokenRecord> tokens,
                           store_.List());
  absl::MutexLock lock(&mutex_);
  tokens_.clear();
  for (storage::TokenRecord& token : tokens) {
    std::string hash = token.secret_sha256;
    tokens_.emplace(std::move(hash), std::move(token));
  }
  return absl::OkStatus();
}

absl::StatusOr<Caller> AccessControl::Identify(
    absl::string_view authorization) {
  if (operator_hash_.empty()) {
    return Caller{"anybody", Bit(v1::Access::ADMIN)};
  }
  if (authorization.empty()) {
    return absl::UnauthenticatedError(
        "this server wants a bearer token: --token_file of our programs, the "
        "header Authorization: Bearer TOKEN over HTTP");
  }
  const absl::Status unknown = absl::UnauthenticatedError(
      "the bearer token is not this server's, has expired or was revoked; "
      "check the token or --token_file");
  if (!absl::ConsumePrefix(&authorization, rpc::kBearerPrefix)) return unknown;
  const std::string hash = Sha256Hex(authorization);
  if (SameBytes(hash, operator_hash_)) {
    return Caller{"operator", Bit(v1::Access::ADMIN)};
  }
  const absl::Time now = clock_.Now();
  absl::MutexLock lock(&mutex_);
  const auto found = tokens_.find(hash);
  if (found == tokens_.end() || !IsLive(found->second, now)) return unknown;
  Caller caller{found->second.name, 0, found->second.token_id};
  caller.expire_time = found->second.expire_time;
  if (!found->second.project.empty()) caller.project = found->second.project;
  for (const v1::Access::Scope scope : found->second.scopes) {
    caller.scopes |= Bit(scope);
  }
  return caller;
}

absl::Status AccessControl::Check(const Caller& caller,
                                  const std::string& method) const {
  const auto found = wanted_.find(method);
  // What nobody thought of is the operator's.
  const unsigned wanted =
      found == wanted_.end() ? Bit(v1::Access::ADMIN) : found->second;
  if ((caller.scopes & wanted) != 0) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "the token '", caller.name, "' may not do this: it needs the scope ",
      ScopeNames(wanted, " or "), "; it has ",
      caller.scopes == 0 ? "none" : ScopeNames(caller.scopes, " and ")));
}

absl::Status AccessControl::CheckCertificate(const Caller& caller,
                                             const std::string& method,
                                             bool certified) const {
  constexpr auto kAdmin = v1::Access::ADMIN;
  const unsigned programs = Bit(v1::Access::WORK) | Bit(v1::Access::DEVICE);
  const auto found = wanted_.find(method);
  const unsigned wanted =
      found == wanted_.end() ? 0 : found->second & ~Bit(kAdmin);
  const bool for_programs = wanted != 0 && (wanted & ~programs) == 0;
  if (certified || (!for_programs && (caller.scopes & programs) == 0)) {
    return absl::OkStatus();
  }
  return absl::UnauthenticatedError(
      "this server wants a certificate of workers and agents; give --tls_cert "
      "and --tls_key");
}

absl::StatusOr<std::string> AccessControl::Create(storage::TokenRecord& token) {
  const absl::Time now = clock_.Now();
  {
    absl::MutexLock lock(&mutex_);
    int live = 0;
    for (const auto& [hash, record] : tokens_) live += IsLive(record, now);
    if (live >= kMaxLiveTokens) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "there are ", live, " live tokens; revoke some of them"));
    }
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes,
                           SecretRandomBytes(kSecretBytes));
  OPTFARM_ASSIGN_OR_RETURN(const std::string id, SecretRandomBytes(kIdBytes));
  const std::string secret =
      absl::StrCat(kSecretPrefix, absl::WebSafeBase64Escape(bytes));
  token.token_id = absl::BytesToHexString(id);
  token.secret_sha256 = Sha256Hex(secret);
  token.create_time = now;
  OPTFARM_RETURN_IF_ERROR(store_.Add(token));
  absl::MutexLock lock(&mutex_);
  tokens_.emplace(token.secret_sha256, token);
  return secret;
}

absl::StatusOr<storage::TokenRecord> AccessControl::Revoke(
    const std::string& token_id) {
  const absl::Status revoked = store_.Revoke(token_id, clock_.Now());
  if (absl::IsNotFound(revoked)) {
    return absl::NotFoundError(absl::StrCat("there is no token ",
                                            Quoted(token_id),
                                            "; list the tokens to see their "
                                            "ids"));
  }
  OPTFARM_RETURN_IF_ERROR(revoked);
  OPTFARM_RETURN_IF_ERROR(Reload());
  open_calls_.EndThoseOf(token_id);
  absl::MutexLock lock(&mutex_);
  for (const auto& [hash, token] : tokens_) {
    if (token.token_id == token_id) return token;
  }
  return absl::NotFoundError("the token is gone");
}

absl::StatusOr<std::vector<storage::TokenRecord>> AccessControl::List() {
  OPTFARM_ASSIGN_OR_RETURN(std::vector<storage::TokenRecord> tokens,
                           store_.List());
  const absl::Time oldest = clock_.Now() - kRemembered;
  std::vector<storage::TokenRecord> shown;
  for (storage::TokenRecord& token : tokens) {
    const bool revoked = token.revoke_time != absl::InfinitePast();
    if (token.expire_time < oldest || (revoked && token.revoke_time < oldest)) {
      continue;
    }
    shown.push_back(std::move(token));
  }
  return shown;
}

}  // namespace optfarm::server
