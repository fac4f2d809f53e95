// What a server that stands by reads of a database that another one leads: the
// tokens, and results. It writes nothing, and waits for nothing long, because
// it may have to lead at any time.

#ifndef OPTFARM_STORAGE_POSTGRES_FOLLOWER_H_
#define OPTFARM_STORAGE_POSTGRES_FOLLOWER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/postgres/connection.h"
#include "storage/sql/metadata_store.h"
#include "storage/token_store.h"

namespace optfarm::storage {

// The tokens, and whether they are still the same. THREADS: one at a time.
class TokenWatch {
 public:
  // `uri` as PostgresConnection takes it.
  explicit TokenWatch(const std::string& uri);

  // A text that is another one when a token was made, revoked or forgotten
  // since. ERRORS: FailedPrecondition when the schema is not the one that this
  // program knows; those of PostgresConnection.
  absl::StatusOr<std::string> Mark();

  // To be read alone.
  TokenStore& tokens() { return *tokens_; }

 private:
  const std::string uri_;
  std::unique_ptr<PostgresConnection> connection_;
  const std::unique_ptr<TokenStore> tokens_;
};

// The records, to be read: what was committed before a call is seen by it.
// Writes are refused with Unavailable. `uri` as PostgresConnection takes it;
// `results_bytes` as PostgresOptions'. Nothing is asked yet.
std::unique_ptr<SqlMetadataStore> FollowPostgres(const std::string& uri,
                                                 int64_t results_bytes);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_POSTGRES_FOLLOWER_H_
