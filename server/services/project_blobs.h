// What counts for a project: lists it, and removes what nobody needs.

#ifndef OPTFARM_SERVER_SERVICES_PROJECT_BLOBS_H_
#define OPTFARM_SERVER_SERVICES_PROJECT_BLOBS_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "optfarm/v1/models.pb.h"
#include "server/access/call_door.h"
#include "server/access/project_limits.h"
#include "server/upkeep/blob_janitor.h"
#include "storage/blob_store.h"
#include "storage/metadata_store.h"
#include "storage/tune_store.h"

namespace optfarm::server {

// THREADS: safe.
class ProjectBlobs {
 public:
  // OWNERSHIP: all outlive it.
  ProjectBlobs(storage::BlobStore& blobs, storage::MetadataStore& store,
               storage::TuneStore& tunes, BlobJanitor& janitor,
               const ProjectLimitsTable& limits, Clock& clock)
      : blobs_(blobs),
        store_(store),
        tunes_(tunes),
        janitor_(janitor),
        limits_(limits),
        clock_(clock) {}

  // ERRORS: those of ModelService.ListBlobs.
  absl::Status List(const Caller& caller, const v1::ListBlobsRequest& request,
                    v1::ListBlobsResponse& response);
  // ERRORS: those of ModelService.RemoveBlobs.
  absl::Status Remove(Call& call, const v1::RemoveBlobsRequest& request,
                      v1::RemoveBlobsResponse& response);

 private:
  // By SHA-256, a running tune of the project that needs the blob: between two
  // rounds no job of it may be live.
  absl::StatusOr<std::map<std::string, std::string>> NeededByTunes(
      const std::string& project);
  absl::Status Describe(const storage::ProjectBlobRecord& record,
                        v1::ProjectBlob& blob);

  storage::BlobStore& blobs_;
  storage::MetadataStore& store_;
  storage::TuneStore& tunes_;
  BlobJanitor& janitor_;
  const ProjectLimitsTable& limits_;
  Clock& clock_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVICES_PROJECT_BLOBS_H_
