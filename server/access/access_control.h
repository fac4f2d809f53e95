// Who may call what: tokens as they are now, and the scopes that each method
// asks for by its options. The gRPC door and the HTTP door both end here.

#ifndef OPTFARM_SERVER_ACCESS_ACCESS_CONTROL_H_
#define OPTFARM_SERVER_ACCESS_ACCESS_CONTROL_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "server/access/open_calls.h"
#include "storage/records.h"
#include "storage/token_store.h"

namespace optfarm::server {

// Who calls.
struct Caller {
  // For people: the token's name; "operator" for the token in the server's own
  // file, "anybody" where no token is wanted.
  std::string name;
  // Bit n is Access.Scope n.
  unsigned scopes = 0;
  // Empty for the operator and for anybody.
  std::string token_id = {};
  // absl::InfiniteFuture(): never.
  absl::Time expire_time = absl::InfiniteFuture();
  // Where its jobs and files go.
  std::string project = storage::kDefaultProject;

  bool May(v1::Access::Scope scope) const;
  // Workers, agents and administrators are of the farm and see all projects.
  bool OfFarm() const;
  // Whose room its calls and transfers take: its project's, or "", that of the
  // farm's own programs.
  std::string Room() const { return OfFarm() ? "" : project; }
  // The only project it sees; nullopt: all.
  std::optional<std::string> OnlyProject() const;
  bool Sees(absl::string_view of_project) const {
    return OfFarm() || of_project == project;
  }
};

// THREADS: all methods are safe.
class AccessControl {
 public:
  // `operator_token` may do everything; with an empty one nobody needs a token.
  // OWNERSHIP: both outlive it.
  static absl::StatusOr<std::unique_ptr<AccessControl>> Load(
      const std::string& operator_token, storage::TokenStore& store,
      Clock& clock);
  // Knows no token before Reload, and changes none: of a store in which another
  // server does. OWNERSHIP: as above.
  static std::unique_ptr<AccessControl> Follow(
      const std::string& operator_token, storage::TokenStore& store,
      Clock& clock);

  // Reads the tokens anew. ERRORS: those of the store.
  absl::Status Reload();

  // Callers must bring a token.
  bool wants_token() const { return !operator_hash_.empty(); }

  // Who brings this value of the header Authorization.
  // ERRORS: Unauthenticated. The message never says how wrong a token was.
  absl::StatusOr<Caller> Identify(absl::string_view authorization);

  // ERRORS: PermissionDenied that names the scopes unless `caller` has one
  // that the method ("optfarm.v1.JobService.GetJob") asks for.
  absl::Status Check(const Caller& caller, const std::string& method) const;

  // Whether `caller` may call the method without a certificate, where the
  // server wants one of workers and agents: their tokens, and all that only
  // they may call, count for nothing without it.
  // ERRORS: Unauthenticated.
  absl::Status CheckCertificate(const Caller& caller, const std::string& method,
                                bool certified) const;

  // Calls of the method go into the audit log.
  bool IsAudited(const std::string& method) const {
    return audited_.contains(method);
  }

  // Calls that end when their tokens do.
  OpenCalls& open_calls() { return open_calls_; }

  // Makes a token and returns its secret.
  absl::StatusOr<std::string> Create(storage::TokenRecord& token);
  // Ends a token and the calls that it holds open. ERRORS: NotFound.
  absl::StatusOr<storage::TokenRecord> Revoke(const std::string& token_id);
  absl::StatusOr<std::vector<storage::TokenRecord>> List();

 private:
  AccessControl(const std::string& operator_token, storage::TokenStore& store,
                Clock& clock);

  // SHA-256 of the operator's token; empty: nobody needs one.
  const std::string operator_hash_;
  storage::TokenStore& store_;
  Clock& clock_;
  // Bits of the scopes, one of which a method asks for, by its full name.
  absl::flat_hash_map<std::string, unsigned> wanted_;
  absl::flat_hash_set<std::string> audited_;
  OpenCalls open_calls_;
  absl::Mutex mutex_;
  // By SHA-256 of the secret.
  absl::flat_hash_map<std::string, storage::TokenRecord> tokens_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_ACCESS_ACCESS_CONTROL_H_
