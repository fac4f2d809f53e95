// TokenStore: bearer tokens by the hash of their secret. It has a database of
// its own, so that whoever may read the farm's numbers sees no word of them.

#ifndef OPTFARM_STORAGE_TOKEN_STORE_H_
#define OPTFARM_STORAGE_TOKEN_STORE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "optfarm/v1/options.pb.h"

namespace optfarm::storage {

struct TokenRecord {
  std::string token_id;
  std::string name;
  // Of the secret, in hex.
  std::string secret_sha256;
  std::vector<v1::Access::Scope> scopes;
  std::string project;
  absl::Time create_time = absl::InfinitePast();
  absl::Time expire_time = absl::InfinitePast();
  // absl::InfinitePast(): it was not.
  absl::Time revoke_time = absl::InfinitePast();
};

// THREADS: all methods are safe.
// ERRORS: as MetadataStore.
class TokenStore {
 public:
  virtual ~TokenStore() = default;

  // ENSURES: on OK it is durable. ERRORS: AlreadyExists.
  virtual absl::Status Add(const TokenRecord& token) = 0;
  // Sets the revoke time where none is set. ERRORS: NotFound.
  virtual absl::Status Revoke(const std::string& token_id, absl::Time now) = 0;
  // All of them, newest first.
  virtual absl::StatusOr<std::vector<TokenRecord>> List() = 0;
  // Forgets those that ended before this.
  virtual absl::Status ForgetEnded(absl::Time before) = 0;
};

// Opens or makes the database at `path`.
absl::StatusOr<std::unique_ptr<TokenStore>> OpenSqliteTokenStore(
    const std::string& path, absl::Time now);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_TOKEN_STORE_H_
