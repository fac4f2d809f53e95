#include "server/services/leader_service.h"

#include <utility>

#include "base/status_macros.h"
#include "server/access/call_origin.h"

namespace optfarm::server {
namespace {

using ::optfarm::servers::v1::AdmitCallRequest;
using ::optfarm::servers::v1::AdmitCallResponse;
using ::optfarm::servers::v1::GrantDownloadRequest;

absl::Status NoServer() {
  return absl::PermissionDeniedError(
      "only servers of this farm may ask this; clients call ModelService and "
      "the like");
}

}  // namespace

LeaderServiceImpl::LeaderServiceImpl(const CallDoor& door,
                                     BlobDownloads& downloads,
                                     std::string secret)
    : door_(door), downloads_(downloads), secret_(std::move(secret)) {
  AdmitUpload<AdmitCallRequest, AdmitCallResponse>(
      "optfarm.servers.v1.LeaderService.AdmitCall",
      [this](grpc::ServerContext& context, const auto& read,
             AdmitCallResponse& response) {
        if (!KnowsSecret(context, secret_)) {
          return CallDoor::Answer(NoServer());
        }
        AdmitCallRequest request;
        absl::Status status = read(request);
        if (status.ok()) status = Admit(context, request, response);
        return CallDoor::Answer(status);
      });
  AdmitBothWays<GrantDownloadRequest, v1::DownloadResponse>(
      "optfarm.servers.v1.LeaderService.GrantDownload",
      [this](grpc::ServerContext& context, const ReadWord& read,
             const WritePiece& write) {
        if (!KnowsSecret(context, secret_)) {
          return CallDoor::Answer(NoServer());
        }
        return Grant(context, read, write);
      });
}

absl::Status LeaderServiceImpl::Admit(const grpc::ServerContext& context,
                                      const AdmitCallRequest& request,
                                      AdmitCallResponse& response) {
  OPTFARM_ASSIGN_OR_RETURN(const Caller caller,
                           door_.Screen(context, request.method()));
  response.set_room(caller.Room());
  return absl::OkStatus();
}

grpc::Status LeaderServiceImpl::Grant(grpc::ServerContext& context,
                                      const ReadWord& read,
                                      const WritePiece& write) {
  return door_.Serve(context, kDownload, [&](Call& call) -> absl::Status {
    GrantDownloadRequest word;
    OPTFARM_RETURN_IF_ERROR(read(word));
    return downloads_.Grant(call, context, word.download(), write,
                            [&]() -> absl::StatusOr<int64_t> {
                              OPTFARM_RETURN_IF_ERROR(read(word));
                              return word.moved_bytes();
                            });
  });
}

}  // namespace optfarm::server
