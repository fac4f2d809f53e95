// StoreService: backups, and questions in SQL.

#ifndef OPTFARM_SERVER_SERVICES_STORE_SERVICE_H_
#define OPTFARM_SERVER_SERVICES_STORE_SERVICE_H_

#include <string>

#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "optfarm/v1/store.grpc.pb.h"
#include "server/access/admitted_service.h"
#include "server/access/call_door.h"
#include "server/upkeep/data_dir.h"
#include "storage/audit_store.h"
#include "storage/blob_store.h"
#include "storage/metadata_store.h"

namespace optfarm::server {

// THREADS: safe. OWNERSHIP: all outlive the service.
class StoreServiceImpl final
    : public AdmittedService<v1::StoreService::Service> {
 public:
  StoreServiceImpl(const CallDoor& door, storage::MetadataStore& store,
                   storage::AuditStore& audit, storage::BlobStore& blobs,
                   const DataDir& data_dir, std::string database_file,
                   Clock& clock);

  grpc::Status Backup(grpc::ServerContext* context,
                      const v1::BackupRequest* request,
                      v1::BackupResponse* response) override;
  grpc::Status QuerySql(grpc::ServerContext* context,
                        const v1::QuerySqlRequest* request,
                        v1::QuerySqlResponse* response) override;
  grpc::Status ListAudit(grpc::ServerContext* context,
                         const v1::ListAuditRequest* request,
                         v1::ListAuditResponse* response) override;

 private:
  absl::Status Audit(const v1::ListAuditRequest& request,
                     v1::ListAuditResponse& response);
  absl::Status MakeBackup(const v1::BackupRequest& request,
                          v1::BackupResponse& response);
  absl::Status Query(const v1::QuerySqlRequest& request,
                     v1::QuerySqlResponse& response);

  const CallDoor& door_;
  storage::MetadataStore& store_;
  storage::AuditStore& audit_;
  storage::BlobStore& blobs_;
  const DataDir& data_dir_;
  // What questions in SQL are asked; empty where the engine is not SQLite.
  const std::string database_file_;
  Clock& clock_;
  // One at a time: each reads the whole database.
  absl::Mutex backup_mutex_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVICES_STORE_SERVICE_H_
