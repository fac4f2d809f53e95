// What a server that stands by reads of a database that another one leads: the
// tokens, and results. It writes nothing, and waits for nothing long, because
// it may have to lead at any time.

#ifndef OPTFARM_STORAGE_POSTGRES_FOLLOWER_H_
#define OPTFARM_STORAGE_POSTGRES_FOLLOWER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/metadata_store.h"
#include "storage/postgres/connection.h"
#include "storage/sql/readers.h"
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

// THREADS: safe.
class PostgresResultReader {
 public:
  // `uri` as PostgresConnection takes it.
  explicit PostgresResultReader(const std::string& uri);

  // As MetadataStore's: what was committed before the call is seen. For filters
  // with a job, which need no numbers in memory.
  absl::StatusOr<std::vector<MeasurementRecord>> QueryMeasurements(
      const MeasurementFilter& filter, const PageRequest& page);

 private:
  SqlReaders readers_;
};

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_POSTGRES_FOLLOWER_H_
