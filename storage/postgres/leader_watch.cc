#include "storage/postgres/leader_watch.h"

#include "absl/time/time.h"
#include "base/status_macros.h"

namespace optfarm::storage {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(3);

constexpr char kLook[] =
    "SELECT epoch, holder, address, secret, lease_until >"
    " CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"
    " FROM leader";

}  // namespace

absl::StatusOr<LeaderRecord> LeaderWatch::Look() {
  if (connection_ == nullptr || connection_->lost()) {
    connection_.reset();
    OPTFARM_ASSIGN_OR_RETURN(connection_, PostgresConnection::Connect(uri_));
  }
  OPTFARM_ASSIGN_OR_RETURN(const PostgresResult row,
                           connection_->Query(kLook, {}, kPatience));
  if (row.rows() != 1) {
    return absl::DataLossError(
        "the table leader of the database has not its one row; restore the "
        "database from a backup");
  }
  LeaderRecord leader;
  leader.epoch = row.Int(0, 0);
  leader.holder = row.Text(0, 1);
  leader.address = row.Text(0, 2);
  leader.secret = row.Text(0, 3);
  leader.leads = row.Int(0, 4) != 0;
  return leader;
}

}  // namespace optfarm::storage
