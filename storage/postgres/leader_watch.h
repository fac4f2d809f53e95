// Who leads the servers of a database, as its row of the leader says.

#ifndef OPTFARM_STORAGE_POSTGRES_LEADER_WATCH_H_
#define OPTFARM_STORAGE_POSTGRES_LEADER_WATCH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "storage/postgres/connection.h"

namespace optfarm::storage {

struct LeaderRecord {
  // Grows with each server that takes over.
  int64_t epoch = 0;
  // Machine and process, for people.
  std::string holder;
  // Where it takes calls of other servers; empty: it takes none.
  std::string address;
  // What those calls have to show.
  std::string secret;
  // By the database's clock its lease goes on.
  bool leads = false;
};

// THREADS: one thread at a time.
class LeaderWatch {
 public:
  // `uri` as PostgresConnection takes it.
  explicit LeaderWatch(std::string uri) : uri_(std::move(uri)) {}

  // Reads the row; a lost connection is made anew. Waits a few seconds at most.
  // REQUIRES: the schema is there. ERRORS: those of PostgresConnection.
  absl::StatusOr<LeaderRecord> Look();

 private:
  const std::string uri_;
  std::unique_ptr<PostgresConnection> connection_;
};

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_POSTGRES_LEADER_WATCH_H_
