// FarmService: jobs as they change and what they came to, how devices came to
// be as they are, projects with what they use, the store, workers and agents.

#ifndef OPTFARM_SERVER_SERVICES_FARM_SERVICE_H_
#define OPTFARM_SERVER_SERVICES_FARM_SERVICE_H_

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "optfarm/v1/farm.grpc.pb.h"
#include "server/access/access_control.h"
#include "server/access/admitted_service.h"
#include "server/access/call_door.h"
#include "server/access/project_limits.h"
#include "server/delivery/job_list_feed.h"
#include "server/delivery/job_list_watch.h"
#include "server/delivery/job_lists.h"
#include "server/scheduling/scheduler.h"
#include "server/upkeep/blob_janitor.h"
#include "storage/blob_store.h"
#include "storage/metadata_store.h"

namespace optfarm::server {

// What does not change while a server runs.
struct StoreFacts {
  // As StoreUsage's.
  std::string blob_engine;
  std::string database_engine;
  // UNITS: bytes; 0: any number.
  int64_t max_bytes = 0;
  // Folder of the files; empty where they are not on this machine.
  std::string folder;
};

// What the service looks at.
struct FarmParts {
  AccessControl& access;
  const ProjectLimitsTable& limits;
  Scheduler& scheduler;
  storage::MetadataStore& store;
  storage::BlobStore& blobs;
  const BlobJanitor& janitor;
  JobLists& lists;
  JobListFeed& feed;
};

// Everything by threads but WatchJobs, which may stay open for days.
// THREADS: safe. OWNERSHIP: door, parts and clock outlive the service.
class FarmServiceImpl final
    : public AdmittedService<v1::FarmService::WithCallbackMethod_WatchJobs<
          v1::FarmService::Service>> {
 public:
  FarmServiceImpl(const CallDoor& door, const FarmParts& parts,
                  StoreFacts facts, Clock& clock);

  grpc::Status ListVerdicts(grpc::ServerContext* context,
                            const v1::ListVerdictsRequest* request,
                            v1::ListVerdictsResponse* response) override;
  grpc::Status ListDeviceHistory(
      grpc::ServerContext* context, const v1::ListDeviceHistoryRequest* request,
      v1::ListDeviceHistoryResponse* response) override;
  grpc::Status ListProjects(grpc::ServerContext* context,
                            const v1::ListProjectsRequest* request,
                            v1::ListProjectsResponse* response) override;
  grpc::Status GetStoreUsage(grpc::ServerContext* context,
                             const v1::GetStoreUsageRequest* request,
                             v1::StoreUsage* response) override;
  grpc::Status ListParticipants(
      grpc::ServerContext* context, const v1::ListParticipantsRequest* request,
      v1::ListParticipantsResponse* response) override;

 private:
  absl::Status Verdicts(const Caller& caller,
                        const v1::ListVerdictsRequest& request,
                        v1::ListVerdictsResponse& response);
  JobListReactor* Watch(grpc::CallbackServerContext& context);
  absl::Status History(const Caller& caller,
                       const v1::ListDeviceHistoryRequest& request,
                       v1::ListDeviceHistoryResponse& response);
  absl::Status Projects(const v1::ListProjectsRequest& request,
                        v1::ListProjectsResponse& response);
  absl::StatusOr<v1::Project> Describe(const std::string& project,
                                       absl::Time now);
  void Usage(v1::StoreUsage& usage);
  absl::Status Participants(const v1::ListParticipantsRequest& request,
                            v1::ListParticipantsResponse& response);

  const CallDoor& door_;
  const FarmParts farm_;
  const StoreFacts facts_;
  Clock& clock_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVICES_FARM_SERVICE_H_
