#include "server/services/store_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "rpc/proto_time.h"
#include "server/conventions/log_text.h"
#include "server/conventions/names.h"
#include "server/services/list_query.h"
#include "server/upkeep/server_backup.h"
#include "storage/sqlite/analyst.h"

namespace optfarm::server {
namespace {

constexpr int kAuditAPage = 100;
constexpr int kMostRows = 100'000;
constexpr int kMostMilliseconds = 60'000;

absl::Status CheckRange(absl::string_view field, int value, int most) {
  if (value >= 0 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, "; give 0 to ", most));
}

// Texts of a database need not be UTF-8; those of a message must.
void MakeUtf8(v1::QuerySqlResponse& response) {
  for (std::string& column : *response.mutable_columns()) {
    column = ToUtf8(column);
  }
  for (v1::SqlRow& row : *response.mutable_rows()) {
    for (v1::SqlValue& value : *row.mutable_values()) {
      if (value.has_text()) value.set_text(ToUtf8(value.text()));
    }
  }
}

}  // namespace

StoreServiceImpl::StoreServiceImpl(const CallDoor& door,
                                   storage::MetadataStore& store,
                                   storage::AuditStore& audit,
                                   storage::BlobStore& blobs,
                                   const DataDir& data_dir,
                                   std::string database_file, Clock& clock)
    : door_(door),
      store_(store),
      audit_(audit),
      blobs_(blobs),
      data_dir_(data_dir),
      database_file_(std::move(database_file)),
      clock_(clock) {
  AdmitUnary(door, "optfarm.v1.StoreService.Backup", &Service::Backup);
  AdmitUnary(door, "optfarm.v1.StoreService.QuerySql", &Service::QuerySql);
  AdmitUnary(door, "optfarm.v1.StoreService.ListAudit", &Service::ListAudit);
}

grpc::Status StoreServiceImpl::Backup(grpc::ServerContext* context,
                                      const v1::BackupRequest* request,
                                      v1::BackupResponse* response) {
  return door_.Serve(
      *context, "optfarm.v1.StoreService.Backup", [&](Call& call) {
        const absl::Status status = MakeBackup(*request, *response);
        call.subject = response->path();
        return status;
      });
}

absl::Status StoreServiceImpl::MakeBackup(const v1::BackupRequest& request,
                                          v1::BackupResponse& response) {
  std::string name = request.name();
  if (name.empty()) {
    name =
        absl::FormatTime("%Y%m%dT%H%M%SZ", clock_.Now(), absl::UTCTimeZone());
  }
  OPTFARM_RETURN_IF_ERROR(CheckName("backup", name));
  const absl::Time start = absl::Now();
  const std::string path = JoinPath(data_dir_.backups(), name + ".db");
  {
    absl::MutexLock lock(&backup_mutex_);
    OPTFARM_RETURN_IF_ERROR(Annotate(
        WriteServerBackup(store_, blobs_, data_dir_, name, clock_.Now()),
        "backing up the server"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const uint64_t size, FileSize(path));
  OPTFARM_ASSIGN_OR_RETURN(*response.mutable_sha256(), Sha256OfFile(path));
  response.set_path(path);
  response.set_size_bytes(static_cast<int64_t>(size));
  response.set_seconds(absl::ToDoubleSeconds(absl::Now() - start));
  LogInfo("backed up the database to ", path, ", ", size, " bytes");
  return absl::OkStatus();
}

grpc::Status StoreServiceImpl::QuerySql(grpc::ServerContext* context,
                                        const v1::QuerySqlRequest* request,
                                        v1::QuerySqlResponse* response) {
  return door_.Serve(*context, "optfarm.v1.StoreService.QuerySql",
                     [&](Call& call) {
                       call.subject = request->sql();
                       return Query(*request, *response);
                     });
}

grpc::Status StoreServiceImpl::ListAudit(grpc::ServerContext* context,
                                         const v1::ListAuditRequest* request,
                                         v1::ListAuditResponse* response) {
  return door_.Serve(*context, "optfarm.v1.StoreService.ListAudit",
                     [&] { return Audit(*request, *response); });
}

absl::Status StoreServiceImpl::Audit(const v1::ListAuditRequest& request,
                                     v1::ListAuditResponse& response) {
  storage::AuditFilter filter;
  if (!request.actor().empty()) filter.actor = request.actor();
  if (!request.project().empty()) filter.project = request.project();
  if (!request.method().empty()) filter.method = request.method();
  if (request.has_from_time()) {
    filter.from_time = rpc::FromTimestamp(request.from_time());
  }
  if (request.has_until_time()) {
    filter.until_time = rpc::FromTimestamp(request.until_time());
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const storage::PageRequest page,
      ParsePage(request.page_size(), kAuditAPage, request.page_token()));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<storage::AuditRecord> records,
                           audit_.List(filter, page));
  for (const storage::AuditRecord& record : records) {
    v1::AuditEntry& entry = *response.add_entries();
    *entry.mutable_time() = rpc::ToTimestamp(record.time);
    entry.set_actor(record.actor);
    entry.set_token_id(record.token_id);
    entry.set_project(record.project);
    entry.set_peer(record.peer);
    entry.set_method(record.method);
    entry.set_subject(record.subject);
    entry.set_outcome(record.outcome);
    entry.set_message(record.message);
  }
  if (static_cast<int>(records.size()) == page.limit) {
    response.set_next_page_token(PageToken(records.back().number));
  }
  return absl::OkStatus();
}

absl::Status StoreServiceImpl::Query(const v1::QuerySqlRequest& request,
                                     v1::QuerySqlResponse& response) {
  OPTFARM_RETURN_IF_ERROR(
      CheckRange("max_rows", request.max_rows(), kMostRows));
  OPTFARM_RETURN_IF_ERROR(CheckRange(
      "max_milliseconds", request.max_milliseconds(), kMostMilliseconds));
  if (database_file_.empty()) {
    return absl::FailedPreconditionError(
        "this server's database is PostgreSQL: ask it with psql, as a role "
        "that "
        "may read the view results and the tables that docs/scaling.md names");
  }
  storage::SqlLimits limits;
  if (request.max_rows() > 0) limits.max_rows = request.max_rows();
  if (request.max_milliseconds() > 0) {
    limits.max_time = absl::Milliseconds(request.max_milliseconds());
  }
  OPTFARM_ASSIGN_OR_RETURN(
      response, storage::RunReadOnlySql(database_file_, request.sql(), limits));
  MakeUtf8(response);
  return absl::OkStatus();
}

}  // namespace optfarm::server
