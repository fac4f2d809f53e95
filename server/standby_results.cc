#include "server/standby_results.h"

#include <optional>
#include <utility>

#include "base/log.h"
#include "rpc/status.h"
#include "server/access/call_origin.h"

namespace optfarm::server {
namespace {

// Questions under way here; further ones go to the leader. They wait for each
// other, and a server that is to lead waits for them.
constexpr int kAtOnce = 4;

// One question's, until it ends.
class Place {
 public:
  explicit Place(std::atomic<int>& taken)
      : taken_(taken), is_free_(++taken <= kAtOnce) {}
  ~Place() { --taken_; }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  bool is_free() const { return is_free_; }

 private:
  std::atomic<int>& taken_;
  const bool is_free_;
};

// What the leader would say too.
bool IsAnswer(const absl::Status& status) {
  return status.ok() || absl::IsInvalidArgument(status) ||
         absl::IsNotFound(status);
}

}  // namespace

StandbyResults::StandbyResults(const LeaderDoor& door, FollowedAccess& access,
                               CallForwarder& forwarder,
                               std::unique_ptr<storage::SqlMetadataStore> store)
    : access_(access),
      forwarder_(forwarder),
      store_(std::move(store)),
      questions_(*store_) {
  const auto enter = [&door](const char* method) {
    return [&door, method](grpc::ServerContext& context) {
      return door.Enter(context, method);
    };
  };
  AdmitUnaryBy(enter(kQueryResults), kQueryResults, &Service::QueryResults);
  AdmitUnaryBy(enter(kCompareResults), kCompareResults,
               &Service::CompareResults);
  AdmitUnaryBy(enter(kListHistory), kListHistory, &Service::ListHistory);
  AdmitUnaryBy(enter(kFindRegressions), kFindRegressions,
               &Service::FindRegressions);
  loader_ = std::thread([this] {
    const absl::Status status = store_->ReadIntoMemory();
    if (!status.ok()) {
      LogWarning("reading the numbers of results, later: ", status.message());
    }
    ready_ = true;
  });
}

StandbyResults::~StandbyResults() { loader_.join(); }

template <typename Request, typename Response>
grpc::Status StandbyResults::Answer(
    const std::string& name,
    absl::Status (ResultQuestions::*question)(const Caller&, const Request&,
                                              Response&),
    grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                 Response*),
    grpc::ServerContext& context, const Request& request, Response& response) {
  {
    const Place here(under_way_);
    std::optional<Caller> caller;
    if (here.is_free() && ready_ && !WasForwarded(context)) {
      caller = access_.Admit(context, name);
    }
    if (caller) {
      const absl::Status status =
          (questions_.*question)(*caller, request, response);
      if (IsAnswer(status)) {
        ++served_;
        return CallDoor::Answer(status);
      }
      response.Clear();
    }
  }
  const auto place = forwarder_.Enter(context);
  if (!place.ok()) return CallDoor::Answer(place.status());
  forwarder_.NoteSentOn();
  const auto stub = v1::ResultService::NewStub((*place)->channel());
  return rpc::ToGrpc((*place)->Outcome(
      ((*stub).*method)(&(*place)->context(), request, &response)));
}

grpc::Status StandbyResults::QueryResults(
    grpc::ServerContext* context, const v1::QueryResultsRequest* request,
    v1::QueryResultsResponse* response) {
  return Answer(kQueryResults, &ResultQuestions::Query, &Stub::QueryResults,
                *context, *request, *response);
}

grpc::Status StandbyResults::CompareResults(
    grpc::ServerContext* context, const v1::CompareResultsRequest* request,
    v1::CompareResultsResponse* response) {
  return Answer(kCompareResults, &ResultQuestions::Compare,
                &Stub::CompareResults, *context, *request, *response);
}

grpc::Status StandbyResults::ListHistory(grpc::ServerContext* context,
                                         const v1::ListHistoryRequest* request,
                                         v1::ListHistoryResponse* response) {
  return Answer(kListHistory, &ResultQuestions::History, &Stub::ListHistory,
                *context, *request, *response);
}

grpc::Status StandbyResults::FindRegressions(
    grpc::ServerContext* context, const v1::FindRegressionsRequest* request,
    v1::FindRegressionsResponse* response) {
  return Answer(kFindRegressions, &ResultQuestions::Regressions,
                &Stub::FindRegressions, *context, *request, *response);
}

}  // namespace optfarm::server
