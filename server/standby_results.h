// ResultService of a server that stands by: read from the database, whose
// numbers it has in memory as the leader has them, brought up to date in the
// transaction of each question. What it cannot answer goes to the leader.

#ifndef OPTFARM_SERVER_STANDBY_RESULTS_H_
#define OPTFARM_SERVER_STANDBY_RESULTS_H_

#include <grpcpp/server_context.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "optfarm/v1/results.grpc.pb.h"
#include "server/access/admitted_service.h"
#include "server/forwarding/call_forwarder.h"
#include "server/forwarding/followed_access.h"
#include "server/forwarding/leader_door.h"
#include "server/services/result_questions.h"
#include "storage/sql/metadata_store.h"

namespace optfarm::server {

// THREADS: safe.
class StandbyResults final
    : public AdmittedService<v1::ResultService::Service> {
 public:
  // Begins to read the numbers; until they are here, the leader is asked.
  // OWNERSHIP: the first three outlive it.
  StandbyResults(const LeaderDoor& door, FollowedAccess& access,
                 CallForwarder& forwarder,
                 std::unique_ptr<storage::SqlMetadataStore> store);
  ~StandbyResults() override;

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

  // Questions that were answered here.
  int64_t served() const { return served_; }

 private:
  using Stub = v1::ResultService::Stub;

  // Answers by `question`, or has the leader do so by `method`.
  template <typename Request, typename Response>
  grpc::Status Answer(const std::string& name,
                      absl::Status (ResultQuestions::*question)(const Caller&,
                                                                const Request&,
                                                                Response&),
                      grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                   const Request&, Response*),
                      grpc::ServerContext& context, const Request& request,
                      Response& response);

  FollowedAccess& access_;
  CallForwarder& forwarder_;
  const std::unique_ptr<storage::SqlMetadataStore> store_;
  ResultQuestions questions_;
  std::atomic<bool> ready_ = false;
  std::atomic<int> under_way_ = 0;
  std::atomic<int64_t> served_ = 0;
  std::thread loader_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_STANDBY_RESULTS_H_
