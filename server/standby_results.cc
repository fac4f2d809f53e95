#include "server/standby_results.h"

#include <optional>

#include "rpc/status.h"
#include "server/access/call_origin.h"
#include "server/services/result_query.h"

namespace optfarm::server {

StandbyResults::StandbyResults(const LeaderDoor& door, FollowedAccess& access,
                               CallForwarder& forwarder,
                               const std::string& database)
    : access_(access), forwarder_(forwarder), reader_(database) {
  AdmitUnaryBy(
      [&door](grpc::ServerContext& context) {
        return door.Enter(context, kQueryResults);
      },
      kQueryResults, &StandbyResults::QueryResults);
  ServeOnly(kQueryResults);
}

bool StandbyResults::Serve(const grpc::ServerContext& context,
                           const v1::QueryResultsRequest& request,
                           v1::QueryResultsResponse& response,
                           absl::Status& status) {
  if (request.job_id().empty() || WasForwarded(context)) return false;
  const std::optional<Caller> caller = access_.Admit(context, kQueryResults);
  if (!caller) return false;
  status = server::QueryResults(
      *caller, request,
      [this](const auto& filter, const auto& page) {
        return reader_.QueryMeasurements(filter, page);
      },
      response);
  // The leader may reach the database, or wait for it for longer.
  if (!status.ok() && !absl::IsInvalidArgument(status)) return false;
  ++served_;
  return true;
}

grpc::Status StandbyResults::QueryResults(
    grpc::ServerContext* context, const v1::QueryResultsRequest* request,
    v1::QueryResultsResponse* response) {
  absl::Status status;
  if (Serve(*context, *request, *response, status)) {
    return CallDoor::Answer(status);
  }
  response->Clear();
  const auto place = forwarder_.Enter(*context);
  if (!place.ok()) return CallDoor::Answer(place.status());
  forwarder_.NoteSentOn();
  return rpc::ToGrpc((*place)->Outcome(
      v1::ResultService::NewStub((*place)->channel())
          ->QueryResults(&(*place)->context(), *request, response)));
}

}  // namespace optfarm::server
