// TuneService: begin, look, list, cancel.

#ifndef OPTFARM_SERVER_SERVICES_TUNE_SERVICE_H_
#define OPTFARM_SERVER_SERVICES_TUNE_SERVICE_H_

#include <string>

#include "optfarm/v1/tunes.grpc.pb.h"
#include "server/access/admitted_service.h"
#include "server/access/call_door.h"
#include "server/tuning/tune_runner.h"
#include "storage/tune_store.h"

namespace optfarm::server {

// THREADS: safe. OWNERSHIP: all outlive the service.
class TuneServiceImpl final : public AdmittedService<v1::TuneService::Service> {
 public:
  TuneServiceImpl(const CallDoor& door, TuneRunner& runner,
                  storage::TuneStore& tunes);

  grpc::Status CreateTune(grpc::ServerContext* context,
                          const v1::CreateTuneRequest* request,
                          v1::CreateTuneResponse* response) override;
  grpc::Status GetTune(grpc::ServerContext* context,
                       const v1::GetTuneRequest* request,
                       v1::Tune* response) override;
  grpc::Status ListTunes(grpc::ServerContext* context,
                         const v1::ListTunesRequest* request,
                         v1::ListTunesResponse* response) override;
  grpc::Status CancelTune(grpc::ServerContext* context,
                          const v1::CancelTuneRequest* request,
                          v1::Tune* response) override;

 private:
  // ERRORS: NotFound, also for a tune of a project that the caller does not
  // see.
  absl::StatusOr<v1::Tune> Find(const Caller& caller,
                                const std::string& tune_id);
  absl::Status List(const Caller& caller, const v1::ListTunesRequest& request,
                    v1::ListTunesResponse& response);

  const CallDoor& door_;
  TuneRunner& runner_;
  storage::TuneStore& tunes_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVICES_TUNE_SERVICE_H_
