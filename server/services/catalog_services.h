// DeviceService and ResultService: what there is to measure on, and what was
// measured. Both only read.

#ifndef OPTFARM_SERVER_SERVICES_CATALOG_SERVICES_H_
#define OPTFARM_SERVER_SERVICES_CATALOG_SERVICES_H_

#include "base/clock.h"
#include "optfarm/v1/devices.grpc.pb.h"
#include "optfarm/v1/results.grpc.pb.h"
#include "server/access/admitted_service.h"
#include "server/access/call_door.h"
#include "server/scheduling/scheduler.h"
#include "server/services/result_questions.h"
#include "storage/metadata_store.h"

namespace optfarm::server {

// THREADS: safe. OWNERSHIP: all outlive the service.
class DeviceServiceImpl final
    : public AdmittedService<v1::DeviceService::Service> {
 public:
  DeviceServiceImpl(const CallDoor& door, Scheduler& scheduler, Clock& clock);

  grpc::Status ListDevices(grpc::ServerContext* context,
                           const v1::ListDevicesRequest* request,
                           v1::ListDevicesResponse* response) override;
  grpc::Status GetDevice(grpc::ServerContext* context,
                         const v1::GetDeviceRequest* request,
                         v1::Device* response) override;
  grpc::Status ChangeDevice(grpc::ServerContext* context,
                            const v1::ChangeDeviceRequest* request,
                            v1::Device* response) override;
  grpc::Status DeleteDevice(grpc::ServerContext* context,
                            const v1::DeleteDeviceRequest* request,
                            v1::Device* response) override;

 private:
  const CallDoor& door_;
  Scheduler& scheduler_;
  Clock& clock_;
};

// THREADS: safe. OWNERSHIP: all outlive the service.
class ResultServiceImpl final
    : public AdmittedService<v1::ResultService::Service> {
 public:
  ResultServiceImpl(const CallDoor& door, storage::MetadataStore& store);

  grpc::Status QueryResults(grpc::ServerContext* context,
                            const v1::QueryResultsRequest* request,
                            v1::QueryResultsResponse* response) override;
  grpc::Status CompareResults(grpc::ServerContext* context,
                              const v1::CompareResultsRequest* request,
                              v1::CompareResultsResponse* response) override;
  grpc::Status ListHistory(grpc::ServerContext* context,
                           const v1::ListHistoryRequest* request,
                           v1::ListHistoryResponse* response) override;
  grpc::Status FindRegressions(grpc::ServerContext* context,
                               const v1::FindRegressionsRequest* request,
                               v1::FindRegressionsResponse* response) override;

 private:
  const CallDoor& door_;
  ResultQuestions questions_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVICES_CATALOG_SERVICES_H_
