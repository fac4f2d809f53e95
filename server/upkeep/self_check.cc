#include "server/upkeep/self_check.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "rpc/proto_time.h"
#include "storage/postgres/migrations.h"
#include "storage/postgres/stores.h"
#include "storage/s3/s3_location.h"

namespace optfarm::server {
namespace {

// Of what was found.
constexpr absl::Duration kFresh = absl::Seconds(1);
constexpr absl::Duration kPatience = absl::Seconds(5);

constexpr char kAsk[] =
    "SELECT COALESCE(MAX(version), 0),"
    " CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"
    " FROM schema_version";

// Notes what was asked at `begin` and has just been answered.
void Note(v1::Dependency& dependency, absl::Time begin,
          const absl::Status& status) {
  if (status.ok()) {
    *dependency.mutable_latency() = rpc::ToProtoDuration(absl::Now() - begin);
  } else {
    dependency.set_problem(std::string(status.message()));
  }
}

}  // namespace

v1::ServerState SelfCheck::Look() {
  absl::MutexLock lock(&mutex_);
  if (absl::Now() - looked_ > kFresh) {
    last_.Clear();
    last_.set_version(OPTFARM_VERSION);
    LookAtDatabase(last_);
    v1::Dependency& blobs = *last_.mutable_blobs();
    blobs.set_engine(absl::StartsWith(options_.blobs.blobs, "s3:") ? "s3"
                                                                   : "folder");
    const absl::Time begin = absl::Now();
    Note(blobs, begin, AskBlobs());
    looked_ = absl::Now();
  }
  v1::ServerState state = last_;
  *state.mutable_time() = rpc::ToTimestamp(options_.clock->Now());
  if (state.schema_step() > 0) {
    *state.mutable_database_time() =
        rpc::ToTimestamp(options_.clock->Now() + database_ahead_);
  }
  return state;
}

void SelfCheck::LookAtDatabase(v1::ServerState& state) {
  v1::Dependency& database = *state.mutable_database();
  if (!storage::IsPostgresUri(options_.database)) {
    database.set_engine("sqlite");
    const absl::Time begin = absl::Now();
    return Note(database, begin, options_.ask_database());
  }
  database.set_engine("postgresql");
  state.set_known_schema_step(
      static_cast<int32_t>(storage::AllPostgresMigrations().size()));
  const bool is_new = connection_ == nullptr || connection_->lost();
  if (is_new) {
    connection_.reset();
    auto connection = storage::PostgresConnection::Connect(options_.database);
    if (!connection.ok()) {
      database.set_problem(std::string(connection.status().message()));
      return;
    }
    connection_ = *std::move(connection);
    // What is asked for the first time takes longer.
    AskPostgres(state).IgnoreError();
  }
  const absl::Time begin = absl::Now();
  const absl::Status status = AskPostgres(state);
  // Nobody may have asked since the database was started again.
  if (!is_new && connection_->lost()) return LookAtDatabase(state);
  Note(database, begin, status);
}

absl::Status SelfCheck::AskPostgres(v1::ServerState& state) {
  OPTFARM_ASSIGN_OR_RETURN(const storage::PostgresResult answer,
                           connection_->Query(kAsk, {}, kPatience));
  state.set_schema_step(static_cast<int32_t>(answer.Int(0, 0)));
  database_ahead_ =
      absl::FromUnixMicros(answer.Int(0, 1)) - options_.clock->Now();
  return absl::OkStatus();
}

absl::Status SelfCheck::AskBlobs() {
  if (!absl::StartsWith(options_.blobs.blobs, "s3:")) {
    const std::string& folder = options_.blob_folder;
    if (::access(folder.c_str(), R_OK | W_OK | X_OK) == 0) {
      return absl::OkStatus();
    }
    return absl::ErrnoToStatus(
        errno, absl::StrCat("the folder '", folder,
                            "' of the files cannot be read and written: look "
                            "at its disk and its permissions"));
  }
  if (bucket_ == nullptr) {
    storage::S3ClientOptions s3;
    OPTFARM_ASSIGN_OR_RETURN(
        s3.transport.location,
        storage::ParseS3Location(
            options_.blobs.blobs, options_.blobs.s3_endpoint,
            options_.blobs.s3_region, options_.blobs.s3_path_style));
    OPTFARM_ASSIGN_OR_RETURN(
        s3.transport.credentials,
        storage::ReadS3Credentials(options_.blobs.s3_credentials_file));
    s3.transport.connect_timeout = kPatience;
    s3.transport.stall_timeout = kPatience;
    s3.max_attempts = 1;
    bucket_ = std::make_unique<storage::S3Client>(s3);
  }
  return bucket_->Check();
}

}  // namespace optfarm::server
